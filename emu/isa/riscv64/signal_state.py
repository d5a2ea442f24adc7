"""The floating-point registers in the frame of a signal (struct __riscv_d_ext_state).

Source: Linux 6.12 arch/riscv/include/uapi/asm/ptrace.h, arch/riscv/kernel/signal.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.isa.riscv64.unicorn import UNICORN
from emu.isa.signal_state import StateCpu, read_file, write_file

_FILE: Final = UNICORN.vectors[0]
_FCSR_AT: Final = 32 * 8


def save(cpu: StateCpu, _error: int) -> bytes:
    """Return the registers, then fcsr."""
    return read_file(cpu, 0, _FILE) + struct.pack("<I", cpu.read_register("fcsr"))


def load(cpu: StateCpu, data: bytes) -> None:
    """Set the registers."""
    write_file(cpu, 0, _FILE, data[:_FCSR_AT])
    cpu.write_register("fcsr", struct.unpack_from("<I", data, _FCSR_AT)[0])
