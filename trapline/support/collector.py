"""The garbage collector of a process that makes tens of thousands of objects which last."""

from __future__ import annotations

import gc


def relieve() -> None:
    """Never search again what exists now, and search what is made later seldom."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
