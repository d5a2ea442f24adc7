"""A context keeps all of a CPU's state: programs take turns on one CPU by it."""

from __future__ import annotations

import pytest
from unicorn import arm64_const as arm64
from unicorn import riscv_const as riscv
from unicorn import x86_const as x86

from emu.engine.engine import Engine
from emu.isa import ISAS

# ISA -> the registers with what floating-point instructions leave and obey, and a value for each.
_X86 = ((x86.UC_X86_REG_MXCSR, 0x7FBF), (x86.UC_X86_REG_FPSW, 0x3F), (x86.UC_X86_REG_FPCW, 0xC7F))
STATUS = {
    "x86_64": _X86,
    "i386": _X86,
    "aarch64": ((arm64.UC_ARM64_REG_FPSR, 0x0800_009F), (arm64.UC_ARM64_REG_FPCR, 0x00C0_0000)),
    "riscv64": ((riscv.UC_RISCV_REG_FCSR, 0x7F),),
}

# The registers of 16 bits.
SHORT = {x86.UC_X86_REG_FPSW, x86.UC_X86_REG_FPCW}


def read(cpu, number):
    """Return a register of 32 or 16 bits: Unicorn sets only as many of the value that it returns."""
    return cpu.uc.reg_read(number) & (0xFFFF if number in SHORT else 0xFFFF_FFFF)


@pytest.mark.parametrize(("isa", "number", "value"), [(isa, *row) for isa, rows in STATUS.items() for row in rows])
@pytest.mark.parametrize("saved", [False, True], ids=["new", "saved"])
def test_a_context_keeps_the_state_of_floating_point(isa, number, value, saved):
    cpu = Engine(ISAS[isa], 1 << 20).cpu
    for name, content in ISAS[isa].linux.initial_registers.items():  # else there is no floating point
        cpu.write_register(name, content)
    clear, empty, kept = read(cpu, number), cpu.new_context(), cpu.new_context()
    cpu.uc.reg_write(number, value)
    if saved:
        cpu.save(kept)
    else:
        kept = cpu.new_context()
    cpu.restore(empty)
    assert read(cpu, number) == clear != value
    cpu.restore(kept)
    assert read(cpu, number) == value
