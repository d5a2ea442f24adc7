"""The x86 instructions that DTrace's disassembler decodes, and the lengths that it finds.

The scans of FBT and of the pid provider end at an instruction that it does not decode.  It knows
neither CET (such as `endbr64`) nor XOP, which it reads as a pop, nor most of AVX-512, nor es, ss
and ds overrides in 64-bit mode.  It has some instructions with other lengths than the CPU.

`emu.isa.x86.length` does the work, with the opcode maps of this disassembler.

Source: FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c (dtrace_disx86 and its tables), of 2024; before
EVEX was added (2020), 62 was `bound` in 32-bit mode, and unknown in 64-bit mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, Instruction, Mode, take_apart
from emu.isa.x86.length import (
    EVEX,
    LONGEST,
    VEX,
    XOP,
    Map,
    Maps,
    Parts,
    find_layout,
    find_prefixes,
    opcode_map,
    opcodes,
)

SOURCE: Final = "FreeBSD sys/cddl/dev/dtrace/x86/dis_tables.c"
# dis_op0F.  It does not look at mod of the shifts 71 to 73; 66 shortens a conditional jump in 64-bit mode, too.
_TWO_BYTES: Final = (
    "MMMM-.....-.-M--"  # 0
    "MMMMMMMMM------M"
    "CCCC----MMMMMMMM"
    "......--!-!-----"
    "MMMMMMMMMMMMMMMM"  # 4
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "BSSSMMM.MM--MMMM"
    "zzzzzzzzzzzzzzzz"  # 8
    "MMMMMMMMMMMMMMMM"
    "...MBM--...MBMMM"
    "MMMMMMMMM-BMMMMM"
    "MMBMBBBM........"  # c
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMM-"
)
# The opcodes of dis_op0F that a prefix changes, and those that exist then: dis_opSIMDdata16, dis_opSIMDrepz and
# dis_opSIMDrepnz.
_SIMD: Final = opcodes("10-17 28-2f 50-70 74-76 7c-7f c2 c4-c6 d0-fe")
_SIMD_ROWS: Final = opcode_map(
    "10-17 28-2f 50-70 74-76 7e-7f c2 c4-c6 d1-ef f1-fe",
    "10-17 28-2f 50-51 54-70 74-76 7c-7f c2 c4-c6 d0-ef f1-fe",
    "10-12 16 2a-2d 51-53 58-5f 6f-70 7e-7f c2 d6 e6",
    "10-12 2a-2d 51 58-5a 5c-5f 70 7c-7d c2 d0 d6 e6 f0",
)
_ALL: Final = "01234567"
_BITS: Final = opcodes("b8 bc-bd")
_MANDATORY: Final = {
    **{one: frozenset(pp for pp, row in enumerate(_SIMD_ROWS) if one in row) for one in _SIMD},
    **dict.fromkeys(_BITS, frozenset({0, 1, 2})),
}
_GROUPS: Final[Mapping[tuple[int, int], tuple[str, str]]] = {
    (0, 0xC0): ("0123457", "0123457"),
    (0, 0xD9): ("0234567", _ALL),
    (0, 0xDA): (_ALL, "01235"),
    (0, 0xDB): ("012357", "0123456"),
    (0, 0xDD): ("0123467", "012345"),
    (0, 0xDF): (_ALL, "0123456"),
    (0, 0xFE): ("01", "01"),
    (0, 0xFF): ("0123456", "0123456"),
    (1, 0x00): ("012345", "012345"),
    (1, 0x01): ("0123467", "0123467"),
    (1, 0x0D): ("12", "12"),
    (1, 0x18): ("0123", "0123"),
    **{(1, mask): ("", _ALL) for mask in bytes.fromhex("50c5d7f7")},
    (1, 0x71): ("246", "246"),
    (1, 0x72): ("246", "246"),
    (1, 0x73): ("2367", "2367"),
    (1, 0xBA): ("4567", "4567"),
    (1, 0xC7): ("134567", "67"),
}
_0F38: Final = opcode_map(
    "00-0b 1c-1e c8-cd f0-f1 f6",
    "00-0b 10 14-15 17 1c-1e 20-25 28-2b 30-35 37-41 80-82 c8-cd cf db-df f0-f1 f6",
    "00-0b 1c-1e c8-cd f6",
    "00-0b 1c-1e c8-cd f0-f1",
)
_0F3A: Final = opcode_map("0f cc", "08-0f 14-17 20-22 40-42 44 60-63 cc ce-cf df", "0f cc", "0f cc")
# dis_opAVX*.
_VEX: Final[Mapping[int, Map]] = {
    1: opcode_map(
        "10-17 28-29 2b 2e-2f 41-42 44-47 4a-4b 50-5f 77 90-93 98-99 ae c2 c6 f2-f3 f5 f7",
        "10-17 28-29 2b 2e-2f 41-42 44-47 4a-4b 50-51 54-76 7c-7f 90-93 98-99 c2 c4-c6 d0-ef f1-fe",
        "10-12 16 2a 2c-2d 51-53 58-5f 6f-70 7e-7f c2 e6",
        "10-12 2a 2c-2d 51 58-5a 5c-5f 70 7c-7d 92-93 c2 d0 e6 f0",
    ),
    2: opcode_map(
        "",
        "00-0f 13 16-1a 1c-1e 20-25 28-41 45-47 58-5a 78-79 8c 8e 90-93 96-9f a6-af b6-bf cf db-df f7",
        "f5 f7",
        "f5-f7",
    ),
    3: opcode_map(
        "",
        "00-02 04-06 08-0f 14-19 1d 20-22 30-33 38-39 40-42 44 46 4a-4c 60-63 ce-cf df",
        "",
        "f0",
    ),
}
# dis_opEVEX*.
_EVEX: Final[Mapping[int, Map]] = {
    1: opcode_map("10-11 28-29 54-57", "10-11 28-29 54-57 63 6f 7f db df eb ef", "6f 7f", "6f 7f"),
    2: opcode_map("", "50-53 cf dc-df", "", ""),
    3: opcode_map("", "44 ce-cf", "", ""),
}
_MAPS: Final = Maps(_TWO_BYTES, _MANDATORY, _GROUPS, _0F38, _0F3A, _VEX, _EVEX, {})
# Prefixes that are not valid in 64-bit mode (it_invalid64); cs is.
_UNKNOWN_SEGMENTS: Final = frozenset({0x26, 0x36, 0x3E})
_REX: Final = 4  # the upper half of its byte


def _find(code: bytes, mode: Mode) -> Parts | None:
    """Return the layout of the instruction that starts `code`; None: it does not decode.

    A decoder with its maps does what it does after some bytes are changed: without a prefix in VEX
    or EVEX it takes the opcode for one of map 1; it does not see XOP; and it takes an index that
    EVEX.X extends for no index at all, so it does not read the SIB byte.
    """
    long = mode is LONG_MODE
    try:
        at = find_prefixes(code[:LONGEST], long=long).end
        first, second = code[at], code[at + 1] if at + 1 < len(code) else 0
        if long and not _prefixes_known(code[:at], first):
            return None
        changed = bytearray(code)
        if first == XOP:
            changed[at + 1] &= 0xC7
        elif first in VEX and (long or second >> 6 == 3):
            if first == 0xC4 and not code[at + 2] & 3:
                if second & 0x1F not in _VEX:
                    return None
                changed[at + 1] = second & 0xE0 | 1
        elif first == EVEX and (long or second >> 4):
            if second & 0x0C or not code[at + 2] & 4:
                return None
            changed[at + 1] |= 0 if long else 0xC0
            if not code[at + 2] & 3:
                changed[at + 1] = changed[at + 1] & 0xFC | 1
            if second >> 5 & 3 == 1 and code[at + 5] & 7 == 4:
                changed[at + 5] &= 0xF8
    except IndexError:
        return None
    if long and first == 0xD5:
        return None
    return find_layout(bytes(changed), long=long, maps=_MAPS)


def _prefixes_known(prefixes: bytes, first: int) -> bool:
    """Return whether 64-bit code may have these prefixes: REX is last, and VEX does not follow."""
    if not _UNKNOWN_SEGMENTS.isdisjoint(prefixes):
        return False
    rex = [at for at, byte in enumerate(prefixes) if byte >> 4 == _REX]
    return not rex or (rex == [len(prefixes) - 1] and first not in VEX)


def read(code: bytes, mode: Mode = LONG_MODE, _length: int = 0) -> Instruction | None:
    """Return an instruction as the disassembler sees it; None: it does not decode it."""
    layout = _find(code, mode)
    return None if layout is None else take_apart(code, mode, layout=layout)


def known_length(code: bytes, mode: Mode = LONG_MODE) -> int:
    """Return the disassembler's length of the instruction that starts `code`.

    0: it does not decode.
    """
    layout = _find(code, mode)
    return 0 if layout is None else layout.length


def measure(code: bytes, word: int) -> tuple[int, int]:
    """Return (length, offset of ModRM) of an instruction, in a mode by the bytes of a word.

    The length is 0 if it does not decode; the offset is -1 if there is no ModRM.
    """
    layout = _find(code, LONG_MODE if word == LONG_MODE.word else PROTECTED_MODE)
    return (0, -1) if layout is None else (layout.length, layout.modrm)


def known_lengths(code: bytes, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield the length of each instruction, up to the first that does not decode."""
    offset = 0
    while length := known_length(code[offset : offset + LONGEST], mode):
        yield length
        offset += length
