"""What DTrace's disassembler knows of x86: where it gives up, FBT's scans and the pid provider's end.

Source: FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c (dtrace_disx86).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.isa.x86.length import instruction_lengths
from emu.isa.x86.plans import LONG_MODE, Instruction, Mode, take_apart

SOURCE: Final = "FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c"
_EVEX: Final = 0x62
_XOP: Final = 0x8F


def knows(insn: Instruction) -> bool:
    """Return whether the disassembler decodes an instruction."""
    if insn.vector_at is not None and insn.opcode in {_EVEX, _XOP}:
        return False
    return not (insn.opcode == 0x0F and insn.second == 0x1E and insn.prefixes)


def known_lengths(code: bytes, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield the length of each instruction, up to the first one that the disassembler does not decode."""
    offset = 0
    for length in instruction_lengths(code, mode=mode.capstone):
        insn = take_apart(code[offset : offset + length], mode)
        if insn is None or not knows(insn):
            return
        yield length
        offset += length
