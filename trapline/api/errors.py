"""The one error of `import trapline`."""

from __future__ import annotations


class TraplineError(Exception):
    """A call that cannot be carried out: the message says what is wrong, and the remedy."""
