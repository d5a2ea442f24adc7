"""AArch64 in portable mode: exceptions to EL1 by the Arm ARM (D1.10, D13.2.37).

Unicorn banks the stack pointer when the guest returns from an exception, but not when PSTATE is
written: that is done here.
"""

from __future__ import annotations

from typing import Final

from unicorn import arm64_const as uc

from emu.isa.unicorn_model import PublicCpu, PublicModel

# Unicorn's numbers (qemu/target/arm/cpu.h, EXCP_*).
_UNDEFINED, _SYSTEM_CALL, _FETCH_FAULT, _DATA_FAULT, _BREAKPOINT = 1, 2, 3, 4, 7
# ESR_EL1: the class; IL, that the instruction has four bytes; of a data abort: a write, a status.
_CLASS: Final = 26
_LONG: Final = 1 << 25
_SVC, _BRK, _FETCH_ABORT, _PC_ALIGNMENT, _DATA_ABORT = 0x15, 0x3C, 0x20, 0x22, 0x24
_FROM_SAME_LEVEL: Final = 1
_WRITE: Final = 1 << 6
# Status: translation and permission faults, without their level.
_TRANSLATION, _PERMISSION = 0b000100, 0b001100
_IMMEDIATE: Final = 0xFFFF
# PSTATE: the level, the stack pointer of the level (h), and all masks with it.
_LEVEL: Final = 0b1100
_OWN_STACK: Final = 1
_EL1H_MASKED: Final = 0x3C5
# Vectors: of the same level with its own stack, of a lower level; an interrupt is behind them.
_SAME, _LOWER, _INTERRUPT = 0x200, 0x400, 0x80
# SPSR_EL1 as (crn, crm, op0, op1, op2); and any register: the write makes QEMU look at PSTATE.
_SPSR: Final = (4, 0, 3, 0, 0)


def _deliver(cpu: PublicCpu, number: int) -> None:
    same = _level(cpu) != 0
    if number == _FETCH_FAULT:
        pc = cpu.read_public(uc.UC_ARM64_REG_PC)
        if pc & 3:
            _enter(cpu, _PC_ALIGNMENT << _CLASS | _LONG, pc)
            return
        status = _status(cpu, pc)
        _enter(cpu, (_FETCH_ABORT + same) << _CLASS | _LONG | status, pc)
    elif number == _DATA_FAULT:
        write = _stores(_word(cpu))
        address = cpu.unreachable(write=write) or 0
        status = _status(cpu, address)
        _enter(cpu, (_DATA_ABORT + same) << _CLASS | _LONG | (_WRITE if write else 0) | status, address)
    else:
        _enter(cpu, _syndrome(cpu, number), None)


def _status(cpu: PublicCpu, address: int) -> int:
    """Return the status of a page fault; its level is 1 for the first of three tables."""
    kind = _PERMISSION if cpu.present(address) else _TRANSLATION
    return kind | cpu.missing(address) + 1


def _syndrome(cpu: PublicCpu, number: int) -> int:
    if number == _SYSTEM_CALL:
        word = int.from_bytes(cpu.before(4), "little")
        return _SVC << _CLASS | _LONG | word >> 5 & _IMMEDIATE
    if number == _BREAKPOINT:
        return _BRK << _CLASS | _LONG | _word(cpu) >> 5 & _IMMEDIATE
    return _LONG


def _word(cpu: PublicCpu) -> int:
    return int.from_bytes(cpu.code()[:4], "little")


def _stores(word: int) -> bool:
    """Return whether a load or store stores (Arm ARM C4.1, Loads and Stores; DC ZVA)."""
    if word & 0x3B00_0000 in {0x3800_0000, 0x3900_0000}:
        if word & 0x3B20_0C00 == 0x3820_0000:  # atomic memory operations
            return True
        operation = word >> 22 & 3
        return not operation & 1 if word & 1 << 26 else operation == 0
    if word & 0x3B00_0000 == 0x1800_0000:  # literals
        return False
    if word & 0xFFFF_FFE0 == 0xD50B_7420:
        return True
    return not word & 1 << 22


def _level(cpu: PublicCpu) -> int:
    return cpu.read_public(uc.UC_ARM64_REG_PSTATE) >> 2 & 3


def _enter(cpu: PublicCpu, syndrome: int, address: int | None, offset: int = 0) -> None:
    """Enter EL1 at its vector."""
    state = cpu.read_public(uc.UC_ARM64_REG_PSTATE)
    lower, own = not state & _LEVEL, state & _OWN_STACK
    pc = cpu.read_public(uc.UC_ARM64_REG_PC)
    cpu.write_public(uc.UC_ARM64_REG_ESR_EL1, syndrome)
    cpu.write_public(uc.UC_ARM64_REG_ELR_EL1, pc)
    if address is not None:
        cpu.write_public(uc.UC_ARM64_REG_FAR_EL1, address)
    if not own:
        cpu.write_public(uc.UC_ARM64_REG_SP_EL0, cpu.read_public(uc.UC_ARM64_REG_SP))
        sp = cpu.read_public(uc.UC_ARM64_REG_SP_EL1)
        cpu.write_public(uc.UC_ARM64_REG_PSTATE, _EL1H_MASKED)
        cpu.write_public(uc.UC_ARM64_REG_SP, sp)
    cpu.write_public(uc.UC_ARM64_REG_PSTATE, _EL1H_MASKED)
    cpu.write_public(uc.UC_ARM64_REG_CP_REG, (*_SPSR, state))
    vector = cpu.read_public(uc.UC_ARM64_REG_VBAR_EL1) + (_LOWER if lower else _SAME if own else 0)
    cpu.write_public(uc.UC_ARM64_REG_PC, vector + offset)


def _interrupt(cpu: PublicCpu) -> None:
    """Take an IRQ; the syndrome stays what it was."""
    _enter(cpu, cpu.read_public(uc.UC_ARM64_REG_ESR_EL1), None, _INTERRUPT)


PUBLIC: Final = PublicModel(deliver=_deliver, interrupt=_interrupt)
