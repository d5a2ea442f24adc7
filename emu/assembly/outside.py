"""Assemblers that may be installed beside us: llvm-mc and GNU as, for what keystone lacks.

An ISA names them with their arguments (`emu/isa/<isa>/assembly.py`).  They take one instruction,
and their result is disassembled like that of keystone.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from emu.isa.assembly import OutsideAssembler
from emu.support import child

# Far more than one instruction needs, in seconds.
_LIMIT = 10


def installed(outside: OutsideAssembler) -> bool:
    """Return whether an assembler is on the path."""
    return shutil.which(outside.program) is not None


@cache
def assembled(outside: OutsideAssembler, statement: str) -> bytes | None:
    """Return the bytes of an instruction.

    None: the assembler is not installed, does not know the instruction, or leaves part of it to a
    linker, as it does with an address.
    """
    program = shutil.which(outside.program)
    if program is None:
        return None
    with TemporaryDirectory(prefix="trapline-") as folder:
        made = Path(folder) / "made.o"
        command = [program, *outside.arguments, "-o", str(made)]
        text = f"{outside.before}\n{statement}\n"
        try:
            done = child.run(command, timeout=_LIMIT, given=text.encode("ascii", "replace"))
        except (OSError, subprocess.TimeoutExpired):
            return None
        return _code(made) if done.returncode == 0 and made.is_file() else None


def _code(path: Path) -> bytes | None:
    """Return the code of an object file; None if there is none, or if it is to be relocated."""
    with path.open("rb") as stream:
        try:
            elf = ELFFile(stream)
            if any(isinstance(section, RelocationSection) for section in elf.iter_sections()):
                return None
            text = elf.get_section_by_name(".text")
            return text.data() or None if text is not None else None
        except ELFError:
            return None
