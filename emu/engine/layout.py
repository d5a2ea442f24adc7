"""Where the pinned Unicorn build keeps its state, and the check that this is that build.

Unicorn's public register calls cost about a microsecond each, and it offers no call at all for
delivering an exception to the guest's own vector.  Both are in reach because the wheel exports
QEMU's functions and because its structures have fixed offsets: those of the 2.1.4 wheel for Linux
on x86-64, read from the v2.1.4 source (qemu/include/hw/core/cpu.h, include/uc_priv.h,
qemu/target/*/cpu.h) and found again at start by `check`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.errors import EngineError

UNICORN_VERSION: Final = "2.1.4"


# struct uc_struct
UC_CPU: Final = 0x1B8
UC_INVALID_ERROR: Final = 0x590
# CPUState
CPU_UC: Final = 0x81A8
CPU_ENV: Final = 0x128
CPU_EXCEPTION: Final = 0x81A0
CPU_HALTED: Final = 0x8198


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Offsets in one ISA's CPU state (CPUArchState), in bytes, and QEMU's delivery function."""

    deliver: str
    check_register: int
    """Unicorn register whose slot 'check' looks for, and where it must be."""
    check_offset: int
    asynchronous: int
    """exception_index of the clock interrupt; unused on x86, which has a function for it."""
    target: str
    """QEMU's name of the CPU, at the end of its functions' names."""

    def function(self, name: str) -> Any:
        """Return a function of QEMU's for this CPU."""
        return getattr(uclib, f"{name}_{self.target}")


X86_HFLAGS: Final = 0xB0
# ES CS SS DS FS GS, 24 bytes each: selector, base, limit, flags.
X86_SEGMENTS: Final = 0xB8
X86_STAR: Final = 0x12D8
X86_LSTAR: Final = 0x12E8
X86_SFMASK: Final = 0x12F8
X86_ERROR_CODE: Final = 0x1508
X86_IS_INT: Final = 0x150C
X86_OLD_EXCEPTION: Final = 0x1578
ARM64_TARGET_EL: Final = 0xBE0
RISCV_PC: Final = 0x200
# The address that a load-exclusive, or lr, has reserved: all ones for none.
RESERVATION: Final = {"aarch64": 0x2F00, "riscv64": 0x208}

LAYOUTS: Final = {
    "x86_64": StateLayout("x86_cpu_do_interrupt_x86_64", unicorn.x86_const.UC_X86_REG_RAX, 0, 0, "x86_64"),
    # The same CPU, in 32-bit mode.
    "i386": StateLayout("x86_cpu_do_interrupt_x86_64", unicorn.x86_const.UC_X86_REG_EAX, 0, 0, "x86_64"),
    # EXCP_IRQ
    "aarch64": StateLayout("arm_cpu_do_interrupt_aarch64", unicorn.arm64_const.UC_ARM64_REG_X0, 0x40, 5, "aarch64"),
    # RISCV_EXCP_INT_FLAG | IRQ_S_SOFT
    "riscv64": StateLayout(
        "riscv_cpu_do_interrupt_riscv64", unicorn.riscv_const.UC_RISCV_REG_A0, 80, 0x8000_0001, "riscv64"
    ),
}


def word(address: int) -> int:
    """Read a 64-bit word of this process."""
    return ctypes.c_uint64.from_address(address).value


def check(uc: unicorn.Uc, isa: str) -> tuple[int, int]:
    """Return the addresses of CPUState and CPUArchState.

    Raises `EngineError` if this is not the Unicorn build whose layout is known.
    """
    layout = LAYOUTS[isa]
    advice = f"install unicorn {UNICORN_VERSION} (its Linux x86-64 wheel): pip install unicorn=={UNICORN_VERSION}"
    if unicorn.__version__ != UNICORN_VERSION:
        raise EngineError(f"unicorn {unicorn.__version__} is not the version this engine knows; {advice}")
    magic = 0x5678_9ABC if isa == "i386" else 0x5A5A_1234_5678_9ABC
    saved = uc.reg_read(layout.check_register)  # also makes Unicorn build the CPU, which it does late
    uc.reg_write(layout.check_register, magic)
    handle = uc._uch.value  # noqa: SLF001  there is no public way to the handle
    cpu = word(handle + UC_CPU)
    # The CPU points back at its engine: nothing else would, so a moved field is noticed before it is used.
    if word(cpu + CPU_UC) != handle or word(word(cpu + CPU_ENV) + layout.check_offset) != magic:
        raise EngineError(f"this build of unicorn {UNICORN_VERSION} keeps its state elsewhere; {advice}")
    if not hasattr(uclib, layout.deliver):
        raise EngineError(f"this build of unicorn does not export {layout.deliver}; {advice}")
    uc.reg_write(layout.check_register, saved)
    return cpu, word(cpu + CPU_ENV)


# Exception numbers in Unicorn's hooks.
X86_BREAKPOINT: Final = 3
X86_INVALID_OPCODE: Final = 6
ARM64_BRK: Final = 7
ARM64_SVC: Final = 2
RISCV_BREAKPOINT: Final = 3
RISCV_ECALL: Final = 8
X86_SYSTEM_CALL: Final = 0x80
BREAKPOINT: Final = {
    "x86_64": X86_BREAKPOINT,
    "aarch64": ARM64_BRK,
    "riscv64": RISCV_BREAKPOINT,
    "i386": X86_BREAKPOINT,
}

X86_EFLAGS_ID: Final = unicorn.x86_const.UC_X86_REG_EFLAGS
X86_EIP_ID: Final = unicorn.x86_const.UC_X86_REG_EIP
X86: Final = frozenset({"x86_64", "i386"})
# Traps that are system calls; x86-64's is none.
SYSTEM_CALL: Final = {"aarch64": ARM64_SVC, "riscv64": RISCV_ECALL, "i386": X86_SYSTEM_CALL}
