"""The location of the vector and floating-point registers in the CPU state.

Unicorn's public calls cost a microsecond per register; a comparison of whole machine states needs
only the bytes. Their places are not constants. A pattern is written into the first and the last
register by the public call, and is then searched in the CPU state.
"""

from __future__ import annotations

import ctypes
from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import UcContext

from emu.engine.errors import EngineError
from emu.isa.base import Isa

# Bytes of the CPU state that are searched: the vectors come early in it.
_STATE: Final = 16 << 10


def locate(uc: unicorn.Uc, isa: Isa, env: int, context: UcContext) -> tuple[tuple[int, int], ...]:
    """Return (address, size) of each run of registers in the state at `env`.

    The registers are unchanged afterwards.

    `context` is used to save them.  Raises `EngineError` if a register is not found.
    """
    uc.context_update(context)
    found = []
    for file in isa.unicorn.vectors:
        places = []
        for number in (file.first, file.last):
            pattern = (0x5AB1_7E57_0DDB_A115_C0FF_EE00_0000_0000 | number).to_bytes(16, "little")[: file.size]
            uc.reg_write(number, file.value(pattern))
            place = ctypes.string_at(env, _STATE).find(pattern)
            if place < 0:
                raise EngineError(f"unicorn: register {number} of {isa.name} is not in the CPU state that is searched")
            places.append(place)
        found.append((env + places[0], places[1] + file.size - places[0]))
    uc.context_restore(context)
    return tuple(found)
