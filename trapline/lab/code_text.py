"""Addresses and bytes of a guest as text: what a firing's stages say about code."""

from __future__ import annotations

from typing import Final

from emu import disassembly
from emu.disassembly import Syntax
from trapline.lab.guests import SteppedGuest

# A listing: instructions after the site, and lines in all.
_AFTER: Final = 3
_LINES: Final = 8


class CodeText:
    """Writes places and instructions of a guest."""

    def __init__(self, guest: SteppedGuest, syntax: Syntax) -> None:
        self._guest = guest
        self._syntax = syntax

    def place(self, address: int) -> str:
        """Return module`function+0xoffset, or the address where there is no symbol."""
        found = self._guest.locate(address)
        if found is None or not found.symbol:
            return f"{address:#x}"
        return f"{found.module}`{found.symbol}" + (f"+{found.offset:#x}" if found.offset else "")

    def instruction(self, code: bytes, address: int) -> str:
        """Disassemble the first instruction of some bytes."""
        return self._first(code, address)[1]

    def _first(self, code: bytes, address: int) -> tuple[int, str]:
        isa = self._guest.isa
        found = disassembly.first(isa.capstone, code, address, self._syntax)
        if found is not None:
            return found.size, found.text
        if isa.refused is not None and len(code) > 1 and isa.refused(code):  # as debuggers show it: prefix, rest
            size, text = self._first(code[1:], address + 1)
            return size + 1, f"lock {text}"
        return 1, disassembly.NO_INSTRUCTION

    def listing(self, code: bytes, start: int, site: int) -> tuple[str, ...]:
        """Return the disassembly around a site: the last lines up to a few after it."""
        lines: list[str] = []
        at, after = 0, 0
        while at < len(code) and after < _AFTER:
            size, text = self._first(code[at : at + 16], start + at)
            after += start + at > site
            lines.append(f"<+{at}>".ljust(8) + f"{code[at : at + size].hex(' '):<24}  {text}")
            at += size
        return tuple(lines[-_LINES:])
