"""The instruction set architectures, by name."""

from __future__ import annotations

from emu.isa.aarch64 import AARCH64
from emu.isa.base import Isa
from emu.isa.i386 import I386
from emu.isa.riscv64 import RISCV64
from emu.isa.x86_64 import X86_64

ISAS: dict[str, Isa] = {isa.name: isa for isa in (X86_64, AARCH64, RISCV64, I386)}
DEFAULT_ISA = X86_64

__all__ = ["AARCH64", "DEFAULT_ISA", "I386", "ISAS", "RISCV64", "X86_64", "Isa"]
