"""A program made of assembly text, for the check: an ELF file with one function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from emu.assembly import machine_code
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.engine.memory.pages import PAGE
from emu.isa.base import Isa
from trapline.lab.check.site.subject import Subject

# The name of the function, and of the file.
NAME: Final = "asm"
_ADDRESS: Final = 0x40_0000
# An offset in a page, which is a multiple of no power of two but 4.
_INSIDE: Final = 0x6A4
# Size of a word in bytes -> the starts of pages inside which code is tried, and the ends of pages at which, and across
# which, it is: the next address then differs in more than the lower 12 bits, bit 31 becomes set, or bit 32.  Not at 2
# and 4 GB themselves: registers point there in some states (`trapline.lab.check.cpu.states`), and code that reads
# itself would find the breakpoint.
_WITHIN: Final = {4: (_ADDRESS, 0x8010_0000, 0xB000_0000), 8: (_ADDRESS, 0x8010_0000, 0x3F_B000_0000)}
_ENDS: Final = {4: (_ADDRESS + PAGE, 0x7FF0_0000), 8: (_ADDRESS + PAGE, 0x15_8000_0000, 0x16_0000_0000)}
# The offset of code in a kernel's memory.
_IN_KERNEL: Final = 0x20_0000


def program(isa: Isa, text: str) -> bytes:
    """Return an ELF file whose one function is assembled from text.

    A page follows it, so that the next instruction is in executable memory wherever this one ends.
    Raises `emu.assembly.AssemblyError`.
    """
    code = machine_code(isa, text, _ADDRESS)
    section = OutputSection(".text", ALLOC | EXECINSTR, code + bytes(PAGE), _ADDRESS, alignment=8)
    symbol = OutputSymbol(NAME, _ADDRESS, len(code), SymbolType.FUNC, Binding.GLOBAL)
    return elf_file(isa, EXECUTABLE, [section], [symbol], entry=_ADDRESS)


def placed(subject: Subject) -> Iterator[Subject]:
    """Yield such a file as it is, and its code at other addresses.

    What an instruction computes from its address can be wrong at some addresses only: inside a
    page, at its end or across it, where bit 31 is set or becomes so, above 4 GB, and in a kernel.
    """
    isa, size = subject.isa, subject.image.functions[0].size
    within: tuple[int, ...] = _WITHIN[isa.word]
    ends: tuple[int, ...] = _ENDS[isa.word]
    if subject.kind == "fbt":
        kernel = isa.kernel_base + _IN_KERNEL
        within, ends = (*within, kernel), (*ends, kernel)
    align = isa.instruction_alignment
    starts = [_ADDRESS, *(page + _INSIDE for page in within), *(end - -(-size // align) * align for end in ends)]
    starts += [end - align for end in ends if size > align]
    for start in starts:
        yield replace(subject, moved=start - _ADDRESS)


@contextmanager
def assembly_file(isa: Isa, text: str) -> Iterator[Path]:
    """Lend such a file inside a `with` statement.  Raises `emu.assembly.AssemblyError`."""
    with TemporaryDirectory(prefix="trapline-") as folder:
        path = Path(folder, NAME)
        path.write_bytes(program(isa, text))
        yield path
