"""A program made of assembly text, for the check: an ELF file with one function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from emu.assembly import machine_code
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.isa.base import Isa

# The name of the function, and of the file.
NAME: Final = "asm"
_ADDRESS: Final = 0x40_0000


def program(isa: Isa, text: str) -> bytes:
    """Return an ELF file whose one function is assembled from text.

    Raises `emu.assembly.AssemblyError`.
    """
    code = machine_code(isa, text, _ADDRESS)
    section = OutputSection(".text", ALLOC | EXECINSTR, code, _ADDRESS, alignment=8)
    symbol = OutputSymbol(NAME, _ADDRESS, len(code), SymbolType.FUNC, Binding.GLOBAL)
    return elf_file(isa, EXECUTABLE, [section], [symbol], entry=_ADDRESS)


@contextmanager
def assembly_file(isa: Isa, text: str) -> Iterator[Path]:
    """Lend such a file inside a `with` statement.  Raises `emu.assembly.AssemblyError`."""
    with TemporaryDirectory(prefix="trapline-") as folder:
        path = Path(folder, NAME)
        path.write_bytes(program(isa, text))
        yield path
