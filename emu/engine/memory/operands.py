"""The exact address that an instruction failed to access.

Unicorn reports the page only, but the handlers of programs get the byte.  It is computed from the
instruction's operands and the registers, which still have the values from before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.isa.base import Isa
from emu.isa.disassembly import CS_GRP_CALL, CS_OP_MEM, decoder
from emu.support.words import WORD_MASK, BadAddressError

# Bytes of the longest instruction.
_LONGEST: Final = 15
# Bytes of the largest access.
_LARGEST: Final = 64
_PCS: Final = {"rip", "eip"}
_EITHER: Final = Access.READ | Access.WRITE
# Instructions whose operands are not decoded again.
_REMEMBERED: Final = 1024


class StoppedCpu(Protocol):
    """A CPU at the instruction that has failed: an `Engine`, for instance."""

    isa: Isa

    @property
    def pc(self) -> int:
        """The address of the instruction."""

    def read(self, address: int, size: int) -> bytes:
        """Return memory.  Raises `BadAddressError`."""

    def read_register(self, name: str) -> int:
        """Return a register."""


def fault_address(cpu: StoppedCpu, page: int, access: Access) -> int:
    """Return the first byte that the instruction at pc accesses in the page at `page`.

    If the operands do not say, return the page itself.
    """
    try:
        code = cpu.read(cpu.pc, _LONGEST)
    except BadAddressError as error:
        code = cpu.read(cpu.pc, error.address - cpu.pc)
    for tagged in addresses(cpu, code, access):
        address = cpu.isa.unicorn.untagged(tagged)
        if page - _LARGEST < address < page + PAGE:
            return max(address, page)
    return page


def addresses(cpu: StoppedCpu, code: bytes, access: Access) -> Iterator[int]:
    """Return the addresses that an instruction accesses in this way."""
    accesses = cpu.isa.linux.accesses
    if accesses is not None:
        return accesses(cpu.read_register, code)
    return (place.address(cpu) for place in _places(cpu.isa, code) if access in place.access)


class _Register(NamedTuple):
    """A register's part in an address."""

    name: str
    mask: int = WORD_MASK
    scale: int = 1


class _Place(NamedTuple):
    """The memory operand of an instruction: registers, and a displacement."""

    access: Access
    registers: tuple[_Register, ...]
    displacement: int = 0
    from_pc: bool = False

    def address(self, cpu: StoppedCpu) -> int:
        """Return the address, from the registers as they are."""
        address = self.displacement + (cpu.pc if self.from_pc else 0)
        for name, mask, scale in self.registers:
            address += (cpu.read_register(name) & mask) * scale
        return address & cpu.isa.address_mask


@lru_cache(_REMEMBERED)
def _places(isa: Isa, code: bytes) -> tuple[_Place, ...]:
    """Return where an instruction accesses memory; nothing if the bytes do not decode."""
    insn: Any = next(decoder(isa.capstone, detail=True).disasm(code, 0, 1), None)
    if insn is None:
        return ()
    stack: tuple[_Place, ...] = ()
    access = _EITHER  # the decoder does not always know how an operand is used
    if isa.registers.link is None:  # x86: calls and pushes store on the stack, others may pop
        sp = (_Register(isa.registers.sp),)
        if insn.group(CS_GRP_CALL) or insn.mnemonic.startswith("push"):
            access, stack = Access.READ, (_Place(Access.WRITE, sp, -isa.word),)
        else:
            access = Access.WRITE if insn.mnemonic.startswith("pop") else _EITHER
            stack = (_Place(Access.READ, sp),)
    operands = (_place(isa, insn, operand, access) for operand in insn.operands if operand.type == CS_OP_MEM)
    return (*operands, *stack)


def _place(isa: Isa, insn: Any, operand: Any, access: Access) -> _Place:
    memory = operand.mem
    segment = getattr(memory, "segment", 0)
    scale = memory.scale if hasattr(memory, "scale") else 1 << operand.shift.value
    parts = ((memory.base, 1), (memory.index, scale))
    named = [(insn.reg_name(number), scale) for number, scale in parts if number]
    if segment:
        named.append((f"{insn.reg_name(segment)}_base", 1))
    from_pc = any(name in _PCS for name, _ in named)
    known = (_register(isa, name, scale) for name, scale in named if name not in _PCS)
    registers = tuple(register for register in known if register.name in isa.registers.by_name)
    return _Place(access, registers, memory.disp + (insn.size if from_pc else 0), from_pc)


def _register(isa: Isa, name: str, scale: int) -> _Register:
    known, mask = isa.linux.operand_names.get(name, (name, WORD_MASK))
    return _Register(known, mask, scale)
