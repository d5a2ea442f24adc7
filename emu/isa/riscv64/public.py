"""RISC-V in portable mode: traps by the privileged specification (volume 2, 3.1 and 4.1).

Unicorn reads and writes control registers as the current mode may, so it is set to machine mode for
a moment.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from unicorn import riscv_const as uc

from emu.isa.unicorn_model import PublicCpu, PublicModel
from emu.support.words import WORD_MASK

_USER, _SUPERVISOR, _MACHINE = 0, 1, 3
# The root of the page tables.
_SATP: Final = "satp"
_INTERRUPT: Final = 1 << 63
_SOFTWARE: Final = 1
_BREAKPOINT, _ECALL = 3, 8
_FETCH_FAULT: Final = 12
# Causes with an address: misaligned and failed accesses, page faults; whether they are stores.
_ADDRESSED: Final = {4: False, 5: False, 6: True, 7: True, 13: False, 15: True}
_FETCHED: Final = frozenset({0, 1, _FETCH_FAULT})
_PAGE: Final = 4096
_HALF: Final = 2


class _Level(NamedTuple):
    """The registers of the mode that takes a trap, and the bits of mstatus."""

    cause: int
    pc: int
    value: int
    vector: int
    enabled: int
    enabled_before: int
    mode_before: int
    """The lowest bit of the field."""
    mode_mask: int


_LEVELS: Final = {
    _SUPERVISOR: _Level(
        uc.UC_RISCV_REG_SCAUSE, uc.UC_RISCV_REG_SEPC, uc.UC_RISCV_REG_STVAL, uc.UC_RISCV_REG_STVEC, 1, 5, 8, 1
    ),
    _MACHINE: _Level(
        uc.UC_RISCV_REG_MCAUSE, uc.UC_RISCV_REG_MEPC, uc.UC_RISCV_REG_MTVAL, uc.UC_RISCV_REG_MTVEC, 3, 7, 11, 3
    ),
}


def _deliver(cpu: PublicCpu, number: int) -> None:
    """Take an exception; a breakpoint arrives as an invalid instruction, without a number."""
    mode = cpu.read_public(uc.UC_RISCV_REG_PRIV)
    cause = _BREAKPOINT if number < 0 else number
    _trap(cpu, cause + mode if cause == _ECALL else cause, _value(cpu, cause), mode)


def _value(cpu: PublicCpu, cause: int) -> int:
    """Return the address that an exception is about; 0: none."""
    pc = cpu.read_public(uc.UC_RISCV_REG_PC)
    if cause in _FETCHED:
        crosses = pc % _PAGE == _PAGE - _HALF and cpu.present(pc)
        return pc + _HALF if crosses else pc
    if cause in _ADDRESSED:
        return cpu.unreachable(write=_ADDRESSED[cause]) or 0
    return 0


def _interrupt(cpu: PublicCpu) -> None:
    """Take a software interrupt."""
    _trap(cpu, _INTERRUPT | _SOFTWARE, 0, cpu.read_public(uc.UC_RISCV_REG_PRIV))


def _trap(cpu: PublicCpu, cause: int, value: int, mode: int) -> None:
    pc = cpu.read_public(uc.UC_RISCV_REG_PC)
    cpu.hidden.pop(_SATP, None)
    cpu.write_public(uc.UC_RISCV_REG_PRIV, _MACHINE)
    interrupt = bool(cause & _INTERRUPT)
    delegated = cpu.read_public(uc.UC_RISCV_REG_MIDELEG if interrupt else uc.UC_RISCV_REG_MEDELEG)
    taken = _SUPERVISOR if mode != _MACHINE and delegated >> (cause & ~_INTERRUPT) & 1 else _MACHINE
    level = _LEVELS[taken]
    status = cpu.read_public(uc.UC_RISCV_REG_MSTATUS)
    enabled = status >> level.enabled & 1
    status &= ~(1 << level.enabled | 1 << level.enabled_before | level.mode_mask << level.mode_before)
    cpu.write_public(
        uc.UC_RISCV_REG_MSTATUS, (status | enabled << level.enabled_before | mode << level.mode_before) & WORD_MASK
    )
    cpu.write_public(level.cause, cause)
    cpu.write_public(level.pc, pc)
    cpu.write_public(level.value, value)
    vector = cpu.read_public(level.vector)
    cpu.write_public(uc.UC_RISCV_REG_PRIV, taken)
    offset = 4 * (cause & ~_INTERRUPT) if interrupt and vector & 1 else 0
    cpu.write_public(uc.UC_RISCV_REG_PC, (vector & -4) + offset)


def _root(cpu: PublicCpu) -> int:
    """Return satp, which user mode cannot read: it is read once between two traps."""
    mode = cpu.read_public(uc.UC_RISCV_REG_PRIV)
    if mode != _USER:
        return cpu.read_public(uc.UC_RISCV_REG_SATP)
    known = cpu.hidden.get(_SATP)
    if known is None:
        cpu.write_public(uc.UC_RISCV_REG_PRIV, _MACHINE)
        known = cpu.hidden[_SATP] = cpu.read_public(uc.UC_RISCV_REG_SATP)
        cpu.write_public(uc.UC_RISCV_REG_PRIV, mode)
    return known


PUBLIC: Final = PublicModel(deliver=_deliver, interrupt=_interrupt, reads={_SATP: _root})
