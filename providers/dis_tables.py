"""The x86 instructions that DTrace's disassembler cannot decode.

The scans of FBT and of the pid provider end at an instruction that it cannot decode.

Capstone decodes; this module says which instructions `dtrace_disx86()` refuses, and for which it
finds a shorter length.  It does not know CET (such as `endbr64`), most of AVX-512, FMA4, and ds, es
and ss overrides in 64-bit mode, and decodes an XOP prefix as a pop.

Source: FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c (dtrace_disx86 and its tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, Instruction, Mode, instruction_length, take_apart

SOURCE: Final = "FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c"
_VEX2, _EVEX, _XOP = 0xC5, 0x62, 0x8F
# The two-byte opcodes that are INVALID in dis_op0F and in the tables for 66, f2 and f3 (0f 1e is endbr64 and similar).
_UNKNOWN_0F: Final = frozenset(
    {0x04, 0x0A, 0x0C, 0x0E, 0x0F, *range(0x19, 0x1F), 0x25, 0x27, 0x36, 0x37, 0x39, *range(0x3B, 0x40), 0xA6, 0xA7,
     0xB9, 0xFF}
)  # fmt: skip
# Prefixes that are not valid in 64-bit mode (it_invalid64); cs is.
_UNKNOWN_SEGMENTS: Final = frozenset({"es", "ss", "ds"})


def _opcodes(*ranges: int | range) -> frozenset[int]:
    each: Iterable[Iterable[int]] = ((one,) if isinstance(one, int) else one for one in ranges)
    return frozenset(chain.from_iterable(each))


# dis_opEVEX*: the existing opcodes, by pp and opcode map.  Without a prefix the map is ignored.
_EVEX_0F: Final = _opcodes(0x10, 0x11, 0x28, 0x29, range(0x54, 0x58))
_EVEX_KNOWN: Final[Mapping[tuple[int, int], frozenset[int]]] = {
    (1, 1): _EVEX_0F | _opcodes(0x6F, 0x7F, 0xDB, 0xDF, 0xEB, 0xEF),
    (1, 2): _opcodes(range(0x50, 0x54), 0xCF, range(0xDC, 0xE0)),
    (1, 3): _opcodes(0x44, 0xCE, 0xCF),
    (2, 1): _opcodes(0x6F, 0x7F),
    (3, 1): _opcodes(0x6F, 0x7F),
}
# dis_opAVX0F: without a prefix the map is ignored.
_VEX_0F: Final = _opcodes(
    range(0x10, 0x18), 0x28, 0x29, 0x2B, 0x2E, 0x2F, 0x41, 0x42, range(0x44, 0x48), 0x4A, 0x4B, range(0x50, 0x60), 0x77,
    range(0x90, 0x94), 0x98, 0x99, 0xAE, 0xC2, 0xC6, 0xF2, 0xF3, 0xF5, 0xF7,
)  # fmt: skip
# dis_opAVX660F3A.
_VEX_660F3A: Final = _opcodes(
    range(0x03), range(0x04, 0x07), range(0x08, 0x10), range(0x14, 0x1A), 0x1D, range(0x20, 0x23), range(0x30, 0x34),
    0x38, 0x39, range(0x40, 0x43), 0x44, 0x46, range(0x4A, 0x4D), range(0x60, 0x64), 0xCE, 0xCF, 0xDF,
)  # fmt: skip
# The opcodes of those maps that are listed completely, by pp and opcode map: dis_opAVXF20F3A, dis_opAVXF20F38,
# dis_opAVXF30F38.
_VEX_KNOWN: Final[Mapping[tuple[int, int], frozenset[int]]] = {
    (1, 3): _VEX_660F3A,
    (2, 2): _opcodes(0xF5, 0xF7),
    (2, 3): frozenset(),
    (3, 2): _opcodes(range(0xF5, 0xF8)),
    (3, 3): _opcodes(0xF0),
}


def knows(insn: Instruction) -> bool:
    """Return whether the disassembler decodes an instruction."""
    if insn.mode is LONG_MODE and not _UNKNOWN_SEGMENTS.isdisjoint(insn.segments):
        return False
    vector = insn.vector_at
    if vector is None:
        return insn.opcode != 0x0F or insn.second not in _UNKNOWN_0F
    opcode, data, at = insn.data[vector], insn.data, insn.at
    if insn.opcode == _EVEX:
        pp, table = data[at + 2] & 3, data[at + 1] & 3
        return opcode in (_EVEX_KNOWN.get((pp, table), frozenset()) if pp else _EVEX_0F)
    if insn.opcode == _XOP:
        return True
    pp, table = data[vector - 1] & 3, 1 if insn.opcode == _VEX2 else data[at + 1] & 0x1F
    if not pp:
        return opcode in _VEX_0F
    return (pp, table) not in _VEX_KNOWN or opcode in _VEX_KNOWN[pp, table]


def known_length(code: bytes, mode: Mode = LONG_MODE) -> int:
    """Return the disassembler's length of the instruction that starts `code`.

    0: it does not decode.
    """
    insn = take_apart(code, mode)
    if insn is None or not knows(insn):
        return 0
    if insn.opcode == _XOP and insn.vector_at is not None:
        # The disassembler reads XOP's second byte as ModRM.
        pop = code[: insn.at + 1] + bytes((insn.second & 0xC7,)) + code[insn.at + 2 :]
        return instruction_length(pop, mode)
    return insn.length


def measure(code: bytes, word: int) -> tuple[int, int]:
    """Return (length, offset of ModRM) of an instruction, in a mode by the bytes of a word.

    The length is 0 if it does not decode; the offset is -1 if there is no ModRM.
    """
    mode = LONG_MODE if word == LONG_MODE.word else PROTECTED_MODE
    length = known_length(code, mode)
    insn = take_apart(code, mode) if length else None
    return length, -1 if insn is None or insn.modrm_at is None else insn.modrm_at


def known_lengths(code: bytes, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield the length of each instruction, up to the first that does not decode."""
    offset = 0
    while offset < len(code):
        length = known_length(code[offset : offset + 15], mode)
        if not length or offset + length > len(code):
            return
        yield length
        offset += length
