"""The assembly language of i386."""

from __future__ import annotations

from typing import Final

from emu.isa.x86.assembly import MODE_32, assembly

ASSEMBLY: Final = assembly(MODE_32)
