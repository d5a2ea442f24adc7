"""The assembly language of x86-64."""

from __future__ import annotations

from typing import Final

from emu.isa.x86.assembly import MODE_64, assembly

ASSEMBLY: Final = assembly(MODE_64)
