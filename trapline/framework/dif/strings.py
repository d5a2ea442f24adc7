"""The string subroutines of D as functions from bytes to bytes; strings have no NUL.

Source: FreeBSD dtrace.c dtrace_dif_subr(), dtrace_strtoll(), whose special cases are reproduced.
"""

from __future__ import annotations

from typing import Final

from emu.support.words import WORD_MASK

DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
BASE_MAX: Final = len(DIGITS)
_SLASH: Final = b"/"
# The room for one more step of `cleanpath`.
CLEANPATH_STEP: Final = len(b"/..c\0")


def basename(path: bytes) -> bytes:
    """Return the last component; slashes at the end are ignored."""
    if not path:
        return b"."
    return path.rstrip(_SLASH).rpartition(_SLASH)[2] or _SLASH


def dirname(path: bytes) -> bytes:
    """Return what is before the last component."""
    stripped = path.rstrip(_SLASH)
    if path and not stripped:
        return _SLASH
    if _SLASH not in stripped:
        return b"."
    return stripped.rpartition(_SLASH)[0].rstrip(_SLASH) or _SLASH


def cleanpath(path: bytes, size: int) -> bytes:
    """Resolve `//`, `/./` and `/../` in the text; the result stops short of `size` (strsize) bytes.

    A path that ends in `/..` keeps the slash before the component it takes back.
    """
    result = bytearray()
    at = 0

    def following() -> bytes:
        nonlocal at
        at += 1
        return path[at - 1 : at]

    character = following()
    while len(result) + CLEANPATH_STEP < size:
        if character != _SLASH:
            if not character:
                break
            result += character
            character = following()
            continue
        one = following()
        if one == _SLASH:
            continue
        if one != b".":
            result += _SLASH + one
            if not one:
                break
            character = following()
            continue
        two = following()
        if two == _SLASH:
            character = two
            continue
        if two != b".":
            result += b"/." + two
            if not two:
                break
            character = following()
            continue
        three = following()
        if three not in (_SLASH, b""):
            result += b"/.." + three
            character = following()
            continue
        at -= 1
        parent = max(result.rfind(_SLASH), 0)
        if not three:
            return bytes(result[: parent + 1]) or _SLASH
        del result[parent:]
        character = following()
    return bytes(result)


def substr(text: bytes, start: int, length: int | None, size: int) -> bytes:
    """Return part of a string; negative numbers count from its end."""
    remaining = size if length is None else length
    if start < 0:
        start += len(text)
        if start < 0 < start + remaining:
            remaining += start
            start = 0
    if start < 0 or start >= len(text):
        return b""
    if remaining < 0:
        remaining += len(text) - start
    return text[start : start + min(max(remaining, 0), size - 1)]


def index(text: bytes, part: bytes, start: int | None) -> int:
    """Return where `part` first is, from `start` on; -1 if it is not.

    Perl's rules for starts outside the string.
    """
    if not text and not part:
        return 0
    start = max(start or 0, 0)
    if start >= len(text):
        return -1 if part else len(text)
    return text.find(part, start)


def rindex(text: bytes, part: bytes, start: int | None) -> int:
    """Return where `part` last is, up to `start`; -1 if it is not."""
    if not text and not part:
        return 0
    if start is not None and start < 0:
        return -1 if part else 0
    return text.rfind(part, 0, (len(text) if start is None else start) + len(part))


def strtoll(text: bytes, base: int) -> int:
    """Read a number: blanks and tabs, a sign, 0x for base 16, digits up to any other character.

    0 without digits.
    """
    text = text.lstrip(b" \t")
    negative = text[:1] == b"-"
    if text[:1] in (b"-", b"+"):
        text = text[1:]
    if base == 16 and text[:2] in (b"0x", b"0X"):
        text = text[2:]
    value = 0
    for character in text.lower():
        digit = DIGITS.find(character)
        if not 0 <= digit < base:
            break
        value = value * base + digit
    return -value if negative else value


def lltostr(value: int, base: int) -> bytes:
    """Write a word as a number: signed in base 10 only, with 0 or 0x before base 8 or 16."""
    if value == 0:
        return b"0x0" if base == 16 else b"0"
    negative = base == 10 and value >> 63
    number = (-value if negative else value) & WORD_MASK
    digits = bytearray()
    while number:
        number, digit = divmod(number, base)
        digits.append(DIGITS[digit])
    digits.reverse()
    return (b"-" if negative else b"0x" if base == 16 else b"0" if base == 8 else b"") + bytes(digits)


def upper(text: bytes) -> bytes:
    """Return the text with ASCII letters in upper case."""
    return text.upper()


def lower(text: bytes) -> bytes:
    """Return the text with ASCII letters in lower case."""
    return text.lower()
