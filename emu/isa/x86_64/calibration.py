"""x86-64, for the experiments that find its state."""

from __future__ import annotations

from typing import Final

import unicorn

from emu.isa.x86.calibration import subject
from emu.isa.x86_64.registers import REGISTERS

_GENERAL: Final = tuple(register.unicorn for register in REGISTERS.registers[:16])
SUBJECT: Final = subject(
    unicorn.UC_MODE_64,
    _GENERAL,
    REGISTERS.by_name[REGISTERS.pc].unicorn,
    (0x5A5A_1234_5678_9AB0, 0x1B1B_0123_4567_8AB0),
)
