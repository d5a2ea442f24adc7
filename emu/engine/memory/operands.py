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
from emu.isa.disassembly import CS_GRP_CALL, CS_OP_MEM, CS_OP_REG, decoder
from emu.support.words import WORD_MASK, BadAddressError

# Bytes of the longest instruction.
_LONGEST: Final = 15
# Bytes of the largest access.
_LARGEST: Final = 64
_BYTE, _LONG = 8, 8
_PCS: Final = {"rip", "eip"}
_POPULATION: Final = "popcnt"
_LEAVE, _TABLE_LOOKUP = "leave", "xlatb"
# The address of the table, by the bytes of an address.
_TABLES: Final = {2: "bx", 4: "ebx", 8: "rbx"}
# They may name a bit far from their operand, by a register.
_BIT_TESTS: Final = frozenset({"bt", "bts", "btr", "btc"})
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


class Failed(NamedTuple):
    """The access that an instruction failed to make."""

    address: int
    """The first byte in the page; the page itself if the operands do not say."""
    size: int = 1
    on_stack: bool = False
    """Whether an x86 CPU takes it for one of the stack's, by its base or because it is implied."""


def failed_access(cpu: StoppedCpu, page: int, access: Access) -> Failed:
    """Return what the instruction at pc accesses in the page at `page`."""
    try:
        code = cpu.read(cpu.pc, _LONGEST)
    except BadAddressError as error:
        code = cpu.read(cpu.pc, error.address - cpu.pc)
    if cpu.isa.linux.accesses is None:
        for place in _places(cpu.isa, code):
            address = place.address(cpu)
            if access in place.access and page - _LARGEST < address < page + PAGE:
                return Failed(max(address, page), place.size - max(page - address, 0), place.on_stack)
        return Failed(page)
    for address in addresses(cpu, code, access):
        if page - _LARGEST < address < page + PAGE:
            return Failed(max(address, page))
    return Failed(page)


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
    size: int = 1
    on_stack: bool = False
    mask: int = WORD_MASK
    """The bits of an address in its segment."""
    segment: str = ""
    """The register with the base of the segment."""
    bit: _Register | None = None
    """The register with the number of a bit behind the address."""

    def address(self, cpu: StoppedCpu) -> int:
        """Return the address, from the registers as they are."""
        address = self.displacement + (cpu.pc if self.from_pc else 0)
        for name, mask, scale in self.registers:
            address += (cpu.read_register(name) & mask) * scale
        if self.bit is not None:
            bits = self.size * _BYTE
            number = cpu.read_register(self.bit.name) & self.bit.mask
            address += (number - (number >> bits - 1 << bits)) // bits * self.size
        address &= self.mask
        if self.segment:
            address += cpu.read_register(self.segment)
        return cpu.isa.unicorn.untagged(address & cpu.isa.address_mask)


@lru_cache(_REMEMBERED)
def _places(isa: Isa, code: bytes) -> tuple[_Place, ...]:
    """Return where an instruction accesses memory; nothing if the bytes do not decode."""
    insn: Any = next(decoder(isa.capstone, detail=True).disasm(code, 0, 1), None)
    if insn is None:
        return ()
    stack: tuple[_Place, ...] = ()
    access = _EITHER  # the decoder does not always know how an operand is used
    if isa.registers.link is None:  # x86: calls and pushes store on the stack, others may pop
        name = isa.registers.fp if insn.mnemonic == _LEAVE else isa.registers.sp
        sp = (_Register(name),)
        size = isa.word
        if insn.group(CS_GRP_CALL) or insn.mnemonic.startswith("push"):
            size = insn.operands[0].size if insn.mnemonic == "push" else size
            access, stack = Access.READ, (_Place(Access.WRITE, sp, -size, size=size, on_stack=True),)
        else:
            pops = insn.mnemonic.startswith("pop") and not insn.mnemonic.startswith(_POPULATION)
            access = Access.WRITE if pops else _EITHER
            stack = (_Place(Access.READ, sp, size=size, on_stack=True),)
        if insn.mnemonic == _TABLE_LOOKUP:
            parts = tuple(_register(isa, name, 1) for name in (_TABLES[insn.addr_size], "al"))
            return (_Place(Access.READ, parts, mask=(1 << _BYTE * insn.addr_size) - 1),)
    operands = (_place(isa, insn, operand, access) for operand in insn.operands if operand.type == CS_OP_MEM)
    return (*operands, *stack)


def _place(isa: Isa, insn: Any, operand: Any, access: Access) -> _Place:
    memory = operand.mem
    scale = memory.scale if hasattr(memory, "scale") else 1 << operand.shift.value
    parts = ((memory.base, 1), (memory.index, scale))
    named = [(insn.reg_name(number), scale) for number, scale in parts if number]
    from_pc = any(name in _PCS for name, _ in named)
    known = (_register(isa, name, scale) for name, scale in named if name not in _PCS)
    registers = tuple(register for register in known if register.name in isa.registers.by_name)
    place = _Place(access, registers, memory.disp + (insn.size if from_pc else 0), from_pc)
    if not hasattr(memory, "segment"):
        return place
    segment = insn.reg_name(memory.segment) if memory.segment else ""
    # 64-bit code ignores the prefixes of all other segments.
    own = segment in ("fs", "gs") if isa.word == _LONG else bool(segment)
    stacked = named[0][0][-2:] in ("sp", "bp") if memory.base and not own else segment == "ss" and own
    base = f"{segment}_base"
    bit = None
    if insn.mnemonic.split()[-1] in _BIT_TESTS and insn.operands[1].type == CS_OP_REG:
        bit = _register(isa, insn.reg_name(insn.operands[1].reg), 1)
    return place._replace(
        size=operand.size,
        on_stack=stacked,
        mask=(1 << _BYTE * insn.addr_size) - 1,
        segment=base if base in isa.registers.by_name else "",
        bit=bit,
    )


def _register(isa: Isa, name: str, scale: int) -> _Register:
    known, mask = isa.linux.operand_names.get(name, (name, WORD_MASK))
    return _Register(known, mask, scale)
