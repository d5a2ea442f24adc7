"""The instruction set architectures, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.isa.base import Isa
from emu.isa.x86_64 import X86_64
from emu.support.by_name import ByName

if TYPE_CHECKING:
    from emu.isa.aarch64 import AARCH64
    from emu.isa.i386 import I386
    from emu.isa.riscv64 import RISCV64

ISAS: Final[ByName[Isa]] = ByName("emu.isa", ("x86_64", "aarch64", "riscv64", "i386"))
DEFAULT_ISA = X86_64

__all__ = ["AARCH64", "DEFAULT_ISA", "I386", "ISAS", "RISCV64", "X86_64", "Isa", "isa_of_machine"]


def __getattr__(name: str) -> Isa:
    """Import one of the ISAs that are not the default."""
    if name.lower() not in ISAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return ISAS[name.lower()]


def isa_of_machine(number: int) -> Isa | None:
    """Return the ISA whose ELF files have this e_machine; None: it is not one of ours."""
    return next((isa for isa in ISAS.values() if isa.elf.number == number), None)
