"""The layout of Unicorn's own structures, and a check that this is the layout of this library.

`KNOWN`: Unicorn v2.1.4, qemu/include/hw/core/cpu.h, include/uc_priv.h, in the wheel for Linux on
x86-64.  For another library the offsets are found by experiments (`emu.unicorn_layout`); those that
differ between CPUs are in `emu/isa/<isa>/registers.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.errors import EngineError
from emu.isa.base import Isa
from emu.unicorn_layout.layout import COMMON, REMEDY, part

KNOWN: Final[Mapping[str, int]] = {
    # struct uc_struct
    "UC_CPU": 0x1B8,
    # The tree of exits: see emu/engine/qemu/exits.py, which checks it.
    "UC_EXITS": 0x798,
    # The function that drops the code of an address.
    "UC_INVALIDATE": 0x178,
    # The pointer to QEMU's context for translation.
    "UC_TCG": 0x300,
    # struct hook: the two words with the start and the end of its range.
    "HOOK_RANGE": 0x18,
    # CPUState
    "CPU_UC": 0x81A8,
    "CPU_ENV": 0x128,
    "CPU_EXCEPTION": 0x81A0,
    "CPU_HALTED": 0x8198,
    # The flags that QEMU tests between blocks.
    "CPU_INTERRUPTS": 0x1C,
}
_OFFSETS: Final = part(COMMON, KNOWN)
UC_CPU: Final = _OFFSETS["UC_CPU"]
UC_EXITS: Final = _OFFSETS["UC_EXITS"]
UC_INVALIDATE: Final = _OFFSETS["UC_INVALIDATE"]
UC_TCG: Final = _OFFSETS["UC_TCG"]
HOOK_RANGE: Final = _OFFSETS["HOOK_RANGE"]
CPU_UC: Final = _OFFSETS["CPU_UC"]
CPU_ENV: Final = _OFFSETS["CPU_ENV"]
CPU_EXCEPTION: Final = _OFFSETS["CPU_EXCEPTION"]
CPU_HALTED: Final = _OFFSETS["CPU_HALTED"]
CPU_INTERRUPTS: Final = _OFFSETS["CPU_INTERRUPTS"]

# The advice in errors of this module.
ADVICE: Final = f"`trapline doctor` says more; {REMEDY}"
# The value that `check` puts into a register to find it in memory.
_MAGIC: Final = 0x5A5A_1234_5678_9ABC


def word(address: int) -> int:
    """Read a 64-bit word of this process."""
    return ctypes.c_uint64.from_address(address).value


def check(uc: unicorn.Uc, isa: Isa) -> tuple[int, int]:
    """Return the addresses of CPUState and CPUArchState.

    Raises `EngineError` if the library's layout is another one.
    """
    model = isa.unicorn
    magic = _MAGIC & isa.address_mask
    register = model.ids[model.check_register]
    saved = uc.reg_read(register)  # also makes Unicorn create the CPU, which it does late
    uc.reg_write(register, magic)
    handle = uc._uch.value  # noqa: SLF001  there is no public way to the handle
    cpu = word(handle + UC_CPU)
    # The CPU has a pointer to its engine. No other word has this value, so a moved field is noticed before it is used.
    if word(cpu + CPU_UC) != handle or word(word(cpu + CPU_ENV) + model.check_offset) != magic:
        raise EngineError(f"this build of unicorn {unicorn.__version__} keeps its state elsewhere; {ADVICE}")
    if not hasattr(uclib, model.deliver):
        raise EngineError(f"this build of unicorn does not export {model.deliver}; {ADVICE}")
    uc.reg_write(register, saved)
    return cpu, word(cpu + CPU_ENV)
