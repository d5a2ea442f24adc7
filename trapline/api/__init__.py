"""The functions behind `import trapline`, one module for each; see `help(trapline)`."""

from __future__ import annotations


class TraplineError(Exception):
    """A call that failed: the message says what is wrong, and the remedy."""
