"""The exceptions that floating-point operations of x86 accrue: mxcsr and the x87 status word.

QEMU's operations note their exceptions in a structure of their own (target/i386/cpu.h, sse_status
and fp_status), and QEMU 5 never moves them to mxcsr, and to the x87's status word only a division
by zero: programs saw no others.  So before an instruction that reads or replaces one of these
registers, what has accrued is moved there.

    prefixes (66 67 f2 f3 segments, REX)  0f ae, in memory:         fxsave fxrstor ldmxcsr stmxcsr
                                                                    xsave xrstor xsaveopt
                                          d9 /4 /6, in memory:      fldenv fnstenv
                                          dd /4 /6 /7, in memory:   frstor fnsave fnstsw
                                          db e2, db e3, df e0:      fnclex fninit fnstsw %ax
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Final

from emu.isa.unicorn_model import Accruing
from emu.isa.x86.instruction import LOCK
from emu.isa.x86.length import PREFIXES
from emu.isa.x86.registers import OFFSETS

_REX: Final = range(0x40, 0x50)
_MOST_PREFIXES: Final = 14
_ESCAPE, _GROUP_15 = 0x0F, 0xAE
# ModRM bytes: from here on the operand is a register.
_REGISTER: Final = 0xC0
# First byte -> values of the reg field with an operand in memory; whole ModRM bytes.
_IN_MEMORY: Final = {0xD9: {4, 6}, 0xDD: {4, 6, 7}}
_WHOLE: Final = {0xDB: {0xE2, 0xE3}, 0xDF: {0xE0}}
# IE ZE OE UE PE, which have the same bits everywhere (fpu/softfloat-types.h), and a result that was flushed to zero.
_SAME: Final = 0x3D
_FLUSHED, _UNDERFLOW_AND_PRECISION = 0x80, 0x30
# In the x87's words: the exceptions, which the control word masks; that one is not masked: ES, B.
_EXCEPTIONS, _SUMMARY = 0x3F, 0x8080

# The names for machine code.
NAMES: Final = {f"X86_{name}": OFFSETS[name] for name in ("FPUS", "FPUC", "X87_FLAGS", "SSE_FLAGS", "MXCSR")}


def _found(fetch: Callable[[int], int], address: int, *, long_mode: bool) -> bool:
    at = address
    for _ in range(_MOST_PREFIXES):
        byte = fetch(at)
        if byte == LOCK or not (byte in PREFIXES or (long_mode and byte in _REX)):
            break
        at += 1
    first = fetch(at)
    if first == _ESCAPE:
        return fetch(at + 1) == _GROUP_15 and fetch(at + 2) < _REGISTER
    if first in _IN_MEMORY:
        modrm = fetch(at + 1)
        return modrm < _REGISTER and (modrm >> 3 & 7) in _IN_MEMORY[first]
    return first in _WHOLE and fetch(at + 1) in _WHOLE[first]


def _merge(env: int) -> None:
    accrued = ctypes.c_uint8.from_address(env + OFFSETS["SSE_FLAGS"])
    mxcsr = ctypes.c_uint32.from_address(env + OFFSETS["MXCSR"])
    mxcsr.value |= accrued.value & _SAME | (_UNDERFLOW_AND_PRECISION if accrued.value & _FLUSHED else 0)
    accrued.value = 0
    accrued = ctypes.c_uint8.from_address(env + OFFSETS["X87_FLAGS"])
    status, control = (ctypes.c_uint16.from_address(env + OFFSETS[name]) for name in ("FPUS", "FPUC"))
    status.value |= accrued.value & _SAME
    status.value |= _SUMMARY if status.value & ~control.value & _EXCEPTIONS else 0
    accrued.value = 0


def accruing(*, long_mode: bool) -> Accruing:
    """Return these instructions of a mode, and what is done before them."""
    return Accruing(partial(_found, long_mode=long_mode), _merge)
