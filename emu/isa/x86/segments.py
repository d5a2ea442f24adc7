"""Segment registers of programs.

A program loads them with selectors of the descriptor table: of the flat data segment, and in 32-bit
programs of the thread's own entries, whose bases set_thread_area and clone set.  There is no such
table here: the load raises an exception, whose handler carries it out.  Only fs and gs can have the
thread's entries; the bases of the others stay 0.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from emu.isa.disassembly import decoder
from emu.isa.linux_abi import NOTHING_FOLLOWS, Bases, StoppedCpu
from emu.isa.x86.linux import USER_DATA
from emu.isa.x86.unicorn import DEBUG, GENERAL_PROTECTION
from emu.support.bad_address import BadAddressError
from emu.support.capstone_numbers import CS_ARCH_X86, CS_OP_MEM, CS_OP_REG

_TRAP_FLAG: Final = 0x100
_LONGEST: Final = 15
_PAGE: Final = 4096
_FLAT: Final = frozenset({"ds", "es", "ss"})
_WITH_BASE: Final = frozenset({"fs", "gs"})
_SELECTOR: Final = 2


class Loads(NamedTuple):
    """The loads of segments in one mode of the CPU."""

    mode: int
    """Capstone's."""
    general: tuple[str, ...]
    """The general registers by their numbers."""
    pc: str
    flags: str
    mask: int
    """The bits of an address."""

    def carry_out(self, cpu: StoppedCpu, bases: Bases, exception: int, pc: int) -> int | None:
        """Carry out a load, if that is what caused the exception (`LinuxAbi.execute`).

        Raises `BadAddressError`: the instruction or its operand is not in memory.
        """
        load = self._decoded(_code(cpu, pc)) if exception == GENERAL_PROTECTION else None
        if load is None:
            return None
        selector = load.selector(cpu, self.mask)
        base = 0 if selector == USER_DATA else bases(selector >> 3)
        if base is None or (base and load.segment in _FLAT):
            return None
        cpu.write_register(f"{load.segment}_selector", selector)
        if load.segment in _WITH_BASE:
            cpu.write_register(f"{load.segment}_base", base)
        if load.popped:
            sp = self.general[4]
            cpu.write_register(sp, cpu.read_register(sp) + load.popped & self.mask)
        cpu.pc = pc + load.length
        cpu.discount(-1)  # an instruction that faults is not counted, but this one was carried out
        # A load of ss delays the debug exception by an instruction.
        stepped = load.segment != "ss" and cpu.read_register(self.flags) & _TRAP_FLAG
        return DEBUG if stepped else NOTHING_FOLLOWS

    def _decoded(self, code: bytes) -> _Load | None:
        """Return how an instruction loads a segment, None if it does not.

        The same for an operand in a segment with a base, or with addresses of half the bits.
        """
        insn: Any = next(decoder((CS_ARCH_X86, self.mode), detail=True).disasm(code, 0, 1), None)
        if insn is None or insn.mnemonic not in {"mov", "pop"} or insn.operands[0].type != CS_OP_REG:
            return None
        segment = insn.reg_name(insn.operands[0].reg)
        if segment not in _FLAT | _WITH_BASE:
            return None
        if insn.mnemonic == "pop":
            return _Load(segment, insn.size, popped=insn.operands[0].size, address=((self.general[4], 1),))
        source = insn.operands[1]
        if source.type != CS_OP_MEM:
            return _Load(segment, insn.size, register=self.general[insn.modrm & 7 | (insn.rex & 1) << 3])
        memory = source.mem
        parts = ((memory.base, 1), (memory.index, memory.scale))
        address = tuple((insn.reg_name(number), factor) for number, factor in parts if number)
        known = {self.pc, *self.general}
        if insn.reg_name(memory.segment) in _WITH_BASE or any(name not in known for name, _ in address):
            return None
        behind = insn.size if any(name == self.pc for name, _ in address) else 0
        return _Load(segment, insn.size, address=address, displacement=memory.disp + behind)


class _Load(NamedTuple):
    """An instruction that loads a segment register, and where it takes the selector from."""

    segment: str
    length: int
    popped: int = 0
    """Bytes that it takes off the stack."""
    register: str = ""
    address: tuple[tuple[str, int], ...] = ()
    """Registers and their factors, whose sum with `displacement` is the address."""
    displacement: int = 0

    def selector(self, cpu: StoppedCpu, mask: int) -> int:
        """Return the selector.  Raises `BadAddressError`."""
        if self.register:
            return cpu.read_register(self.register) & 0xFFFF
        place = self.displacement + sum(cpu.read_register(name) * factor for name, factor in self.address)
        return int.from_bytes(cpu.read(place & mask, _SELECTOR), "little")


def _code(cpu: StoppedCpu, pc: int) -> bytes:
    """Return the bytes at pc, fewer if the memory ends with their page."""
    try:
        return cpu.read(pc, _LONGEST)
    except BadAddressError:
        return cpu.read(pc, -pc % _PAGE)
