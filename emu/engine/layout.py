"""The layout of the pinned Unicorn build's state, and a check that this is that build.

Unicorn's public register calls cost about a microsecond each, and it offers no call at all for
delivering an exception to the guest's own vector.  Both are possible because the wheel exports
QEMU's functions and because its structures have fixed offsets: those of the 2.1.4 wheel for Linux
on x86-64, read from the v2.1.4 source (qemu/include/hw/core/cpu.h, include/uc_priv.h) and verified
at the start by `check`. The offsets that differ between CPUs are in `emu/isa/<isa>/unicorn.py`.
"""

from __future__ import annotations

import ctypes
from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.errors import EngineError
from emu.isa.base import Isa

UNICORN_VERSION: Final = "2.1.4"

# struct uc_struct
UC_CPU: Final = 0x1B8
# The tree of exits: see emu/engine/exits.py, which checks it.
UC_EXITS: Final = 0x798
# The function that drops the code of an address.
UC_INVALIDATE: Final = 0x178
# struct hook: the two words with the start and the end of its range.
HOOK_RANGE: Final = 0x18
# CPUState
CPU_UC: Final = 0x81A8
CPU_ENV: Final = 0x128
CPU_EXCEPTION: Final = 0x81A0
CPU_HALTED: Final = 0x8198

# The value that `check` puts into a register to find it in memory.
_MAGIC: Final = 0x5A5A_1234_5678_9ABC


def word(address: int) -> int:
    """Read a 64-bit word of this process."""
    return ctypes.c_uint64.from_address(address).value


def check(uc: unicorn.Uc, isa: Isa) -> tuple[int, int]:
    """Return the addresses of CPUState and CPUArchState.

    Raises `EngineError` if this is not the Unicorn build whose layout is known.
    """
    model = isa.unicorn
    advice = f"install unicorn {UNICORN_VERSION} (its Linux x86-64 wheel): pip install unicorn=={UNICORN_VERSION}"
    if unicorn.__version__ != UNICORN_VERSION:
        raise EngineError(f"unicorn {unicorn.__version__} is not the version this engine knows; {advice}")
    magic = _MAGIC & isa.address_mask
    saved = uc.reg_read(model.check_register)  # also makes Unicorn create the CPU, which it does late
    uc.reg_write(model.check_register, magic)
    handle = uc._uch.value  # noqa: SLF001  there is no public way to the handle
    cpu = word(handle + UC_CPU)
    # The CPU has a pointer to its engine. No other word has this value, so a moved field is noticed before it is used.
    if word(cpu + CPU_UC) != handle or word(word(cpu + CPU_ENV) + model.check_offset) != magic:
        raise EngineError(f"this build of unicorn {UNICORN_VERSION} keeps its state elsewhere; {advice}")
    if not hasattr(uclib, model.deliver):
        raise EngineError(f"this build of unicorn does not export {model.deliver}; {advice}")
    uc.reg_write(model.check_register, saved)
    return cpu, word(cpu + CPU_ENV)
