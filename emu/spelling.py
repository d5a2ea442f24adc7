"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most similar to a misspelt one; None: none is similar."""
    return next(iter(difflib.get_close_matches(name, names, 1)), None)
