"""i386, for the experiments that find its state, which x86-64 has, too."""

from __future__ import annotations

from typing import Final

import unicorn

from emu.isa.i386.registers import GENERAL, REGISTERS
from emu.isa.x86.calibration import subject

SUBJECT: Final = subject(
    unicorn.UC_MODE_32,
    tuple(REGISTERS.by_name[name].unicorn for name in GENERAL),
    REGISTERS.by_name[REGISTERS.pc].unicorn,
    (0x5A5A_9AB0, 0x1B1B_8AB0),
)
