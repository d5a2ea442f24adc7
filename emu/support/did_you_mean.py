"""The spelling of messages: suggestions for misspelt names, and nouns after numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

# The least similarity of a name that is suggested, from 0 to 1.
_SIMILAR: Final = 0.6


def nearest(name: str, names: Iterable[str], similarity: float = _SIMILAR) -> str | None:
    """Return the name that is most similar to a misspelt one; None: none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  only needed once something has gone wrong

    return next(iter(get_close_matches(name, names, 1, similarity)), None)


def did_you_mean(
    name: str, names: Iterable[str], otherwise: str = "", *, written: Callable[[str], str] = "'{}'".format
) -> str:
    """Return ` (did you mean 'X'?)` for the name that is most similar to a misspelt one.

    `otherwise` is returned if none is similar.  `written` writes the name that is suggested.
    """
    near = nearest(name, names)
    return f" (did you mean {written(near)}?)" if near is not None else otherwise


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
