"""A reader of the numbers of DWARF: integers, LEB128, and `.eh_frame`'s encoded pointers."""

from __future__ import annotations

from typing import Final

from emu.support.words import WORD_MASK

# DW_EH_PE_omit: there is no pointer.
OMITTED: Final = 0xFF

# The form of an encoded pointer (DW_EH_PE_*, the lower four bits): its bytes, and whether it has a sign.
_FORMS: Final = {
    0x02: (2, False),
    0x03: (4, False),
    0x04: (8, False),
    0x0A: (2, True),
    0x0B: (4, True),
    0x0C: (8, True),
}
_ULEB128: Final = 0x01
_SLEB128: Final = 0x09
_RELATIVE: Final = 0x10
_BASES: Final = 0xF0


class FrameError(ValueError):
    """Call frame information that is damaged, or of a kind that is not known."""


class Reader:
    """Reads a section from an offset on, up to `end`.  What is not there raises `FrameError`."""

    def __init__(self, data: bytes, offset: int, end: int) -> None:
        self.data = data
        self.offset = offset
        self.end = min(end, len(data))

    @property
    def more(self) -> bool:
        """Whether anything is left."""
        return self.offset < self.end

    def take(self, size: int) -> bytes:
        """Read bytes."""
        if size < 0 or self.offset + size > self.end:
            raise FrameError(f"ends at byte {self.end:#x}, in the middle of a value")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self, size: int, *, signed: bool = False) -> int:
        """Read an integer."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def uleb(self) -> int:
        """Read an unsigned LEB128, of 64 bits at most."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value & WORD_MASK
            if shift > 70:
                raise FrameError("a LEB128 of more than 64 bits")

    def sleb(self) -> int:
        """Read a signed LEB128, of 64 bits at most."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if byte & 0x40 else value
            if shift > 70:
                raise FrameError("a LEB128 of more than 64 bits")

    def text(self) -> bytes:
        """Read a string that ends with a NUL."""
        end = self.data.find(b"\0", self.offset, self.end)
        if end < 0:
            raise FrameError("a string without an end")
        found = self.data[self.offset : end]
        self.offset = end + 1
        return found

    def block(self) -> bytes:
        """Read bytes that their number comes before."""
        return self.take(self.uleb())

    def pointer(self, encoding: int, section: int, word: int) -> int:
        """Read a pointer; `section` is the address of the section's first byte."""
        here = section + self.offset
        form = encoding & 0x0F
        if form == _ULEB128:
            value = self.uleb()
        elif form == _SLEB128:
            value = self.sleb()
        elif form & 7:
            if form not in _FORMS:
                raise FrameError(f"a pointer of the unknown form {form:#x}")
            size, signed = _FORMS[form]
            value = self.number(size, signed=signed)
        else:
            value = self.number(word, signed=bool(form))
        base = encoding & _BASES
        if base not in {0, _RELATIVE}:
            raise FrameError(f"a pointer relative to something that is not known here ({encoding:#x})")
        return (value + (here if base else 0)) & (WORD_MASK if word == 8 else 0xFFFF_FFFF)
