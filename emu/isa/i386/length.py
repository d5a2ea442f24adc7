"""i386 instruction length, by capstone."""

from __future__ import annotations

from functools import partial

import capstone

from emu.isa.x86_64 import length

instruction_length = partial(length.instruction_length, mode=capstone.CS_MODE_32)
instruction_lengths = partial(length.instruction_lengths, mode=capstone.CS_MODE_32)
