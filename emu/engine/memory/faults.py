"""The address of a page fault, by the operands of the instruction and the guest's page tables.

Where a guest has page tables, no public call tells the address that failed.
"""

from __future__ import annotations

from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.memory import Memory
from emu.engine.memory.operands import addresses, told_at
from emu.engine.memory.pages import PAGE
from emu.isa.base import Isa
from emu.support.bad_address import BadAddressError
from emu.support.words import WORD_MASK

# Bytes of the largest access, and of the longest instruction.
_LARGEST: Final = 64
_LONGEST: Final = 16
_INDEX: Final = 0x1FF
_WORD: Final = 8


class Operands:
    """The memory operands of the instruction at the pc of one stopped CPU."""

    def __init__(self, isa: Isa, memory: Memory, pc: int, registers: object) -> None:
        self.isa = isa
        self.pc = pc
        self.read = memory.read
        self.read_register = registers.read_register  # type: ignore[attr-defined]
        self._memory = memory

    def code(self) -> bytes:
        """Return the code at the pc, as far as it is mapped."""
        try:
            return self.read(self.pc, _LONGEST)
        except BadAddressError as error:
            return self.read(self.pc, error.address - self.pc) if error.address > self.pc else b""

    def present(self, address: int) -> bool:
        """Return whether an address is mapped."""
        return self._memory.translate(address) is not None

    def missing(self, address: int) -> int:
        """Return the level of the page tables, from 0 on, whose entry ends the walk to an address."""
        return self._entry(address)[0]

    def unreachable(self, *, write: bool) -> int | None:
        """Return the first byte that the instruction cannot access; None: its operands do not say."""
        access = Access.WRITE if write else Access.READ
        found = list(addresses(self, self.code(), access))
        for address in found:
            following = (address & -PAGE) + PAGE
            for place in (address, following) if following - address < _LARGEST else (address,):
                if not self.present(place) or (write and not self._writable(place)):
                    return place
        kernel = [address for address in found if self.isa.is_kernel_address(address)]
        return next(iter(kernel or found), None)

    def told_at(self, address: int) -> Access:
        """Return how the instruction accesses an address, as far as the decoder says."""
        return told_at(self, self.code(), address)

    def _writable(self, address: int) -> bool:
        _, entry = self._entry(address)
        return entry & self.isa.paging.writable_mask == self.isa.paging.writable

    def _entry(self, address: int) -> tuple[int, int]:
        """Return the level at which the walk to an address ends, and the entry there."""
        tables, registers = self.isa.paging.tables, self.isa.registers
        if tables is None:
            return 0, self.isa.paging.writable
        root = registers.kernel_root if self.isa.is_kernel_address(address) else registers.root
        table = (self.read_register(root) & tables.root_mask) << tables.root_shift
        if not table:
            return 0, self.isa.paging.writable
        level = entry = 0
        for level, shift in enumerate(tables.shifts):  # noqa: B007  the last one is returned
            entry = self._word(table + (address >> shift & _INDEX) * _WORD)
            leaf = bool(entry & tables.leaf_mask) is tables.leaf_set
            if not entry & tables.valid or (shift <= tables.largest_leaf and leaf):
                break
            table = (entry & tables.frame_mask) << tables.frame_shift
        return level, entry

    def _word(self, physical: int) -> int:
        return int.from_bytes(self._memory.ram[physical : physical + _WORD], "little") & WORD_MASK
