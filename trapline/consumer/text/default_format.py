"""The default format of data: trace(), tracemem(), and the keys of an aggregation.

Source: FreeBSD libdtrace dt_consume.c (dt_print_bytes and the record loop of dt_consume_cpu).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from emu.support.immutable import immutable
from trapline.consumer.text.columns import c_string, decode, pad

# Reads an integer of a buffer at an offset.
Read: TypeAlias = Callable[[bytes, int], int]

# Column of a string in a record.
TRACE_WIDTH: Final = -33
# Column of a string among the keys of an aggregation.
KEY_WIDTH: Final = -50


def _reader(code: str) -> Read:
    unpack = struct.Struct("<" + code).unpack_from

    def read(data: bytes, offset: int) -> int:
        value: int = unpack(data, offset)[0]
        return value

    return read


SIGNED: Final[dict[int, Read]] = {size: _reader(code) for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))}
UNSIGNED: Final[dict[int, Read]] = {size: _reader(code) for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))}


@immutable
class Column:
    """The format of integers of one size."""

    read: Read
    width: int

    def text(self, data: bytes, offset: int) -> str:
        """Show the integer in its column, a blank before."""
        return f" {self.read(data, offset):{self.width}d}"

    def quiet(self, data: bytes, offset: int) -> str:
        """Show the integer alone."""
        return str(self.read(data, offset))


# Columns of integers by size: one and two bytes are shown unsigned, four and eight signed.
COLUMNS: Final[dict[int, Column]] = {
    1: Column(UNSIGNED[1], 3),
    2: Column(UNSIGNED[2], 5),
    4: Column(SIGNED[4], 8),
    8: Column(SIGNED[8], 16),
}

# isprint() and isspace() of the C locale, bell and backspace.
_TEXT: Final = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\n\v\f\r\b\a")
_DELETE_TEXT: Final = bytes(sorted(_TEXT))
_SHOWN: Final = bytes(byte if 0x20 <= byte < 0x7F else 0x2E for byte in range(256))
_DUMP_HEADING: Final = "\n" + " " * 11 + "".join(f"  {digit:x}" for digit in range(16)) + "  0123456789abcdef\n"


def show_bytes(data: bytes, width: int, *, quiet: bool = False, raw: bool = False) -> str:
    """Show bytes as text if they are text, else as a dump.

    Text is printable bytes and then nothing but NULs, or printable bytes to the end.  `width` as in
    `pad`; `quiet` leaves the column out, though not where text fills its bytes to the end.  `raw`
    always dumps.
    """
    if not data:
        return ""
    if not raw:
        text = c_string(data)
        if text and not text.translate(None, _DELETE_TEXT):
            if len(text) == len(data):
                return "  " + pad(decode(text), -abs(width))
            if not any(data[len(text) :]):
                return decode(text) if quiet else (" " if width >= 0 else "  ") + pad(decode(text), width)
    return dump(data)


def dump(data: bytes) -> str:
    """Show bytes in hexadecimal, sixteen to a row, with their characters (tracemem)."""
    return _DUMP_HEADING + "".join(_dump_row(data[start : start + 16], start) for start in range(0, len(data), 16))


def _dump_row(row: bytes, start: int) -> str:
    hexadecimal = "".join(f" {byte:02x}" for byte in row)
    return f"     {start:5x}:{hexadecimal:<48}  {row.translate(_SHOWN).decode('ascii')}\n"
