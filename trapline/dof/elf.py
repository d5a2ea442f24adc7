"""DOF as an object file for a linker: the output of `dtrace -G`.

Source: FreeBSD libdtrace dt_link.c (dump_elf32, dump_elf64): a section .SUNW_dof, and the symbol
that drti.o finds it by.
"""

from __future__ import annotations

from typing import Final

from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, RELOCATABLE, WRITE, OutputSection, OutputSymbol, elf_file
from emu.isa.base import Isa

_DOF: Final = 0x6FFFFFF4
_HIDDEN: Final = 2
_ALIGNMENT: Final = 8


def object_file(dof: bytes, isa: Isa) -> bytes:
    """Return a relocatable ELF file that holds DOF."""
    section = OutputSection(".SUNW_dof", WRITE | ALLOC, dof, alignment=_ALIGNMENT, kind=_DOF)
    symbol = OutputSymbol("___SUNW_dof", 0, len(dof), SymbolType.OBJECT, Binding.GLOBAL, _HIDDEN)
    return elf_file(isa, RELOCATABLE, [section], [symbol])
