"""What Linux on x86-64 and on i386 have in common (arch/x86/kernel/traps.c)."""

from __future__ import annotations

from typing import Final

from emu.isa.linux_abi import GENERAL_PROTECTION, ILLEGAL, MISALIGNED, Fault
from emu.isa.linux_signals import FPE_INTDIV, TRAP_BRKPT, Signal

# Signal by the CPU's vector.
FAULTS: Final = {
    0: Fault(Signal.SIGFPE, FPE_INTDIV),
    1: Fault(Signal.SIGTRAP, TRAP_BRKPT),
    4: GENERAL_PROTECTION,
    5: GENERAL_PROTECTION,
    6: ILLEGAL,
    13: GENERAL_PROTECTION,
    16: Fault(Signal.SIGFPE, 0),
    17: MISALIGNED,
    19: Fault(Signal.SIGFPE, 0),
}

# QEMU's hflags and hflags2, one word (target/i386/cpu.h): HF_CPL_MASK, the privilege level 3 of programs.
USER: Final = 3
# Floating point as a program finds it: no exception is enabled, x87 computes with 64 bits and has no values
# (arch/x86/kernel/fpu/init.c, fpstate_init_user).
FLOATING_POINT: Final = {"fpcw": 0x37F, "fptag": 0xFFFF, "mxcsr": 0x1F80}
# Interrupts are enabled.
FLAGS: Final = 0x202
