"""Bytes as text: the guest's data are bytes, and columns are counted in bytes.

Bytes that are not UTF-8 become surrogate escapes, so that recorded data reach the output unchanged.
"""

from __future__ import annotations

from typing import Final

_NAMED: Final = {
    0x00: "\\0",
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


def _escape(byte: int) -> str:
    if byte in _NAMED:
        return _NAMED[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


_ESCAPES: Final = tuple(_escape(byte) for byte in range(256))


def decode(data: bytes) -> str:
    """Return bytes of the guest as text."""
    return data.decode("utf-8", "surrogateescape")


def c_string(data: bytes) -> bytes:
    """Return the bytes before the first NUL."""
    end = data.find(0)
    return data if end < 0 else data[:end]


def escape(data: bytes) -> str:
    """Write bytes with C escapes, or in octal (libdtrace strchr2esc)."""
    return "".join(map(_ESCAPES.__getitem__, data))


def pad(text: str, width: int) -> str:
    """Fill up with blanks as `%*s` does: to the left, or for a negative width to the right.

    Columns are bytes.
    """
    if not text.isascii():
        width = _widened(text, width)
    return text.rjust(width) if width >= 0 else text.ljust(-width)


def clip(text: str, length: int) -> str:
    """Cut as `%.*s` does: to `length` bytes."""
    if text.isascii():
        return text[:length]
    return decode(text.encode("utf-8", "surrogateescape")[:length])


def _widened(text: str, width: int) -> int:
    """Return the width in characters that fills `width` bytes."""
    extra = len(text.encode("utf-8", "surrogateescape")) - len(text)
    return max(width - extra, 0) if width >= 0 else min(width + extra, 0)
