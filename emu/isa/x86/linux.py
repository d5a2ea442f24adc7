"""The common part of Linux on x86-64 and on i386 (arch/x86/kernel/traps.c)."""

from __future__ import annotations

from typing import Final

from emu.isa.linux_abi import GENERAL_PROTECTION, MISALIGNED, Fault, StoppedCpu
from emu.isa.linux_signals import FPE_INTDIV, ILL_ILLOPN, TRAP_BRKPT, TRAP_TRACE, Signal
from emu.isa.unicorn_model import ModelledCpu
from emu.isa.x86 import unicorn as x86
from emu.isa.x86.instruction import PREFIXES
from emu.isa.x86.lock import LOCK

# A number of our own for the debug exception of icebp, of which Linux tells programs another reason.
_ICEBP_VECTOR: Final = 0x101
# Signal by the CPU's vector.
FAULTS: Final = {
    0: Fault(Signal.SIGFPE, FPE_INTDIV),
    1: Fault(Signal.SIGTRAP, TRAP_TRACE),
    _ICEBP_VECTOR: Fault(Signal.SIGTRAP, TRAP_BRKPT),
    4: GENERAL_PROTECTION,
    5: GENERAL_PROTECTION,
    6: Fault(Signal.SIGILL, ILL_ILLOPN),
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
# The flags that are clear in a signal's handler: TF, DF and RF (arch/x86/kernel/signal.c, handle_signal).
CLEARED: Final = 0x100 | 0x400 | 0x1_0000

# The selector of the programs' data (__USER_DS of a 64-bit kernel, arch/x86/include/asm/segment.h).
USER_DATA: Final = 0x2B

_OVERFLOW: Final = 4
# The `int` instructions that a program may use but for int3: their gates are open to it (arch/x86/kernel/idt.c,
# SYSG).
_OPEN_GATES: Final = frozenset({_OVERFLOW})
_INT_LENGTH: Final = 2
_ICEBP: Final = 0xF1
_LONGEST: Final = 15


def raised(cpu: ModelledCpu, stopped: StoppedCpu, number: int, pc: int) -> tuple[int, int]:
    """Return the exception that a CPU raises where Unicorn raises `number`, and its frame's pc.

    Unicorn has no table of gates here, so `int 14` looks like a page fault; a CPU gives #GP at the
    instruction.  Prefixes before it are not looked for.  Unicorn does not know icebp (f1); a CPU
    gives #DB behind it.  Before either, LOCK is undefined.  Source: Intel SDM volume 3, 6.4.4 and
    6.12.1.2.
    """
    if number not in _OPEN_GATES and x86.raised_by_int(cpu):
        return x86.GENERAL_PROTECTION, pc - _INT_LENGTH
    if number == x86.INVALID_OPCODE:
        for at in range(pc, pc + _LONGEST):
            byte = stopped.read(at, 1)[0]
            if byte == x86.INT:
                return x86.GENERAL_PROTECTION, pc
            if byte == _ICEBP:
                return _ICEBP_VECTOR, at + 1
            if byte not in PREFIXES or byte == LOCK:
                break
    return number, pc
