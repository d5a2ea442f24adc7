"""Text of a file that may be hostile, for a terminal."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Return a text in which control characters, and others without a shape, are escapes.

    Those of `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode("ascii") for one in text
    )
