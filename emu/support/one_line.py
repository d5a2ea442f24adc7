"""Text from files, which may be hostile, without characters that control a terminal."""

from __future__ import annotations


def one_line(text: str, keep: str = "") -> str:
    r"""Return a text whose unprintable characters are escaped, as `\x1b`, but those of `keep`.

    Unprintable is what `str.isprintable` calls so: control characters, line ends, characters that
    change the direction of text, and bytes that are not UTF-8 (surrogates).
    """
    if text.isprintable():
        return text
    return "".join(
        mark
        if mark.isprintable() or mark in keep
        else mark.encode("unicode_escape", "backslashreplace").decode("ascii")
        for mark in text
    )
