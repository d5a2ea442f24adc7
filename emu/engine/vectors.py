"""Where the CPU state keeps the vector and floating-point registers.

Unicorn's public calls cost a microsecond a register; whoever compares whole machine states wants
the bytes.  The places are found, not known: a pattern is written into the first and the last
register by the public call, and looked for in the CPU state.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import unicorn
from unicorn.unicorn_py3.unicorn import UcContext

from emu.engine.errors import EngineError

# Bytes of the CPU state that are searched: the vectors come early in it.
_STATE: Final = 16 << 10


class _File(NamedTuple):
    """A run of registers: the first, the last, the bytes of one, and what the public call takes for a pattern."""

    first: int
    last: int
    size: int
    value: Callable[[bytes], Any] = lambda pattern: int.from_bytes(pattern, "little")


_X87: Final = _File(
    unicorn.x86_const.UC_X86_REG_FP0,
    unicorn.x86_const.UC_X86_REG_FP7,
    10,
    lambda pattern: (int.from_bytes(pattern[:8], "little"), int.from_bytes(pattern[8:], "little")),
)
_FILES: Final = {
    "x86_64": (_File(unicorn.x86_const.UC_X86_REG_XMM0, unicorn.x86_const.UC_X86_REG_XMM15, 16), _X87),
    "i386": (_File(unicorn.x86_const.UC_X86_REG_XMM0, unicorn.x86_const.UC_X86_REG_XMM7, 16), _X87),
    "aarch64": (_File(unicorn.arm64_const.UC_ARM64_REG_Q0, unicorn.arm64_const.UC_ARM64_REG_Q31, 16),),
    "riscv64": (_File(unicorn.riscv_const.UC_RISCV_REG_F0, unicorn.riscv_const.UC_RISCV_REG_F31, 8),),
}


def locate(uc: unicorn.Uc, isa: str, env: int, context: UcContext) -> tuple[tuple[int, int], ...]:
    """Return (address, size) of each run of registers in the state at `env`; the registers are as they were after it.

    `context` is used to keep them meanwhile.  Raises `EngineError` if a register is not found.
    """
    uc.context_update(context)
    found = []
    for file in _FILES[isa]:
        places = []
        for number in (file.first, file.last):
            pattern = (0x5AB1_7E57_0DDB_A115_C0FF_EE00_0000_0000 | number).to_bytes(16, "little")[: file.size]
            uc.reg_write(number, file.value(pattern))
            place = ctypes.string_at(env, _STATE).find(pattern)
            if place < 0:
                raise EngineError(f"unicorn: register {number} of {isa} is not where the CPU state is searched")
            places.append(place)
        found.append((env + places[0], places[1] + file.size - places[0]))
    uc.context_restore(context)
    return tuple(found)
