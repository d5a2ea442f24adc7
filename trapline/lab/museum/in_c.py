"""Exhibits whose bug was in C: the same bug in a small C file, compiled, and checked as an object.

The file is testbins/objects/exhibits/NAME.c; it is compiled twice, with the bug and without.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from emu.elf.image import Image
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.guest.kernel.boot.images import built
from trapline.lab.museum.checks import ADDRESS, InRun, InStates
from trapline.lab.museum.exhibit import Exhibit, Showing
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import counts_text, difference_text
from trapline.lab.objects.request import Request

_SOURCES: Final = "testbins/objects/exhibits"
_FUNCTION: Final = "exhibit"


def source(exhibit: Exhibit) -> str:
    """Return the path of an exhibit's C file in the repository."""
    return f"{_SOURCES}/{_stem(exhibit)}.c"


def verdict(exhibit: Exhibit, *, wrong: bool) -> Showing:
    """Check the compiled C on the exhibit's code; `wrong`: with the bug."""
    path = built(exhibit.isa) / "objects" / "exhibits" / f"{_stem(exhibit)}{'-buggy' if wrong else ''}.o"
    with TemporaryDirectory(prefix="trapline-") as folder:
        program = Path(folder, _FUNCTION)
        program.write_bytes(_program(exhibit))
        report = check_objects([path], find(exhibit.glue), Request(Image(program)), exhibit.isa)
    lines = tuple(difference_text(one) for one in report.differences)
    return Showing(report.same, lines or (counts_text(report),))


def _stem(exhibit: Exhibit) -> str:
    return Path(exhibit.path).stem


def _program(exhibit: Exhibit) -> bytes:
    """Return an ELF file with the exhibit's function, or with the instruction that it is about."""
    code = exhibit.code
    if isinstance(exhibit.check, InStates | InRun):
        code = code[exhibit.check.offset :]
        code = code[: exhibit.isa.instruction_length(code)]
    section = OutputSection(".text", ALLOC | EXECINSTR, code, ADDRESS, alignment=8)
    symbol = OutputSymbol(_FUNCTION, ADDRESS, len(code), SymbolType.FUNC, Binding.GLOBAL)
    return elf_file(exhibit.isa, EXECUTABLE, [section], [symbol], entry=ADDRESS)
