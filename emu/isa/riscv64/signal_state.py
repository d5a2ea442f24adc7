"""The floating-point registers in the frame of a signal (struct __riscv_d_ext_state).

Source: Linux 6.12 arch/riscv/include/uapi/asm/ptrace.h, arch/riscv/kernel/signal.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.isa.riscv64.unicorn import UNICORN
from emu.isa.signal_state import StateCpu, put_registers, registers_of

_REGISTERS, _REGISTER = 32, 8
_FCSR_AT: Final = _REGISTERS * _REGISTER


def save(cpu: StateCpu, _error: int) -> bytes:
    """Return the registers, then fcsr."""
    registers = b"".join(registers_of(UNICORN.vectors[0], bytes(cpu.vectors()[0])))
    return registers + struct.pack("<I", cpu.read_register("fcsr"))


def load(cpu: StateCpu, data: bytes) -> None:
    """Set the registers."""
    file = cpu.vectors()[0]
    values = [data[at : at + _REGISTER] for at in range(0, _FCSR_AT, _REGISTER)]
    file[:] = put_registers(UNICORN.vectors[0], bytes(file), values)
    cpu.write_register("fcsr", struct.unpack_from("<I", data, _FCSR_AT)[0])
