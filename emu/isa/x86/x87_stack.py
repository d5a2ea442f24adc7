"""The x87's registers, for an instruction that the host executes (`emu.isa.x86.x87`)."""

from __future__ import annotations

from typing import Final

from unicorn import x86_const as uc

from emu.isa.unicorn_model import ServingCpu
from emu.isa.x86 import x87
from emu.isa.x86.x87 import Extended, Rounding

_REGISTERS: Final = 8
# TOP of the status word, and RC of the control word.
_TOP, _TOP_MASK = 11, 7
_RC, _RC_MASK = 10, 3
# Exceptions that the control word does not mask set ES and B.
_EXCEPTIONS, _SUMMARY = 0x3F, 0x8080
# Two bits of the tag word for each register: empty, and valid.
_EMPTY, _VALID = 3, 0
_EXPONENT: Final = 0x7FFF


def execute(cpu: ServingCpu, code: int) -> None:
    """Execute the instruction with this second byte, but for the pc.

    An exception that is not masked is raised by a later instruction, as all of them; its result is
    stored nevertheless.  QEMU has no exceptions of a full or an empty stack, and neither has this.
    """
    status, control = cpu.read_register("fpsw"), cpu.read_register("fpcw")
    top = status >> _TOP & _TOP_MASK
    st0, st1 = (_read(cpu, top + place) for place in range(2))
    found = x87.result(code, st0, st1, Rounding(control >> _RC & _RC_MASK))
    if x87.OPERATIONS[code].pops:
        _tag(cpu, top, _EMPTY)
        top += 1
    _write(cpu, top, found.number)
    if found.pushed is not None:
        top -= 1
        _tag(cpu, top, _VALID)
        _write(cpu, top, found.pushed)
    status = status & ~(_TOP_MASK << _TOP) & ~x87.OPERATIONS[code].conditions
    status |= (top & _TOP_MASK) << _TOP | found.status
    if status & ~control & _EXCEPTIONS:
        status |= _SUMMARY
    cpu.write_register("fpsw", status)


def _read(cpu: ServingCpu, number: int) -> Extended:
    mantissa, rest = cpu.read_any(uc.UC_X86_REG_FP0 + number % _REGISTERS)
    return Extended(rest >> 15, rest & _EXPONENT, mantissa)


def _write(cpu: ServingCpu, number: int, value: Extended) -> None:
    cpu.write_any(uc.UC_X86_REG_FP0 + number % _REGISTERS, (value.mantissa, value.sign << 15 | value.exponent))


def _tag(cpu: ServingCpu, number: int, tag: int) -> None:
    place = 2 * (number % _REGISTERS)
    cpu.write_register("fptag", cpu.read_register("fptag") & ~(3 << place) | tag << place)
