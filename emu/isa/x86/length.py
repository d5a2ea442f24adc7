"""The lengths of x86 instructions, from tables of the opcode maps.

An instruction is prefixes, an opcode of some map, and what the map says that follows: a ModRM byte
with its address, and an immediate.  An opcode that a map lacks, or has with another mandatory
prefix or another register field only, is not an instruction.  The rest is not checked, since it
does not change a length: the CPU refuses (#UD) a wrong LOCK, an unfit VEX.W, VEX.L or vvvv, and
features that it lacks.

Source: Intel SDM volume 2, chapter 2 and appendix A; AMD APM volumes 3 (appendix A) and 6 (XOP);
Intel APX specification 3.1 (REX2, map 4 of EVEX); Linux arch/x86/lib/insn.c works in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

LONGEST: Final = 15
# The kinds of opcodes: whether a ModRM byte follows, and the size of the immediate.
#
# z: 2 or 4 bytes by the operand size; v: or 8; j: z, but 4 in 64-bit mode; f: z and a selector; a: an address.
_KINDS: Final[Mapping[str, tuple[bool, int | str]]] = {
    ".": (False, 0),
    "b": (False, 1),
    "w": (False, 2),
    "e": (False, 3),
    "z": (False, "z"),
    "v": (False, "v"),
    "j": (False, "j"),
    "f": (False, "f"),
    "a": (False, "a"),
    "M": (True, 0),
    "B": (True, 1),
    "Z": (True, "z"),
    "g": (True, 1),  # group 3: test has an immediate, the others have none
    "h": (True, "z"),
    "C": (True, 0),  # control and debug registers: never memory, whatever mod is
    "S": (True, 1),  # shifts, to a decoder that does not look at mod
    "X": (True, 0),  # extrq and insertq, with a prefix: two immediates
    "D": (True, 1),  # 3DNow!: the last byte is the opcode
}
# "-": no instruction; "!": a prefix or an escape.
#
# Columns 0 to f.
_ONE_BYTE: Final = (
    "MMMMbz..MMMMbz.!"  # 0
    "MMMMbz..MMMMbz.."
    "MMMMbz!.MMMMbz!."
    "MMMMbz!.MMMMbz!."
    "................"  # 4: REX in 64-bit mode
    "................"
    "..MM!!!!zZbB...."
    "bbbbbbbbbbbbbbbb"
    "BZBBMMMMMMMMMMMM"  # 8
    "..........f....."
    "aaaa....bz......"
    "bbbbbbbbvvvvvvvv"
    "BBw.MMBZe.w..b.."  # c
    "MMMMbb..MMMMMMMM"
    "bbbbbbbbjjfb...."
    "!.!!..gh......MM"
)
_NOT_IN_LONG_MODE: Final = bytes.fromhex("06070e16171e1f272f373f606162829ac4c5ced4d5d6ea")
_TWO_BYTES: Final = (  # 0f
    "MMMM-.....-.-M.D"  # 0
    "MMMMMMMMMMMMMMMM"
    "CCCC----MMMMMMMM"
    "......-.!-!-----"
    "MMMMMMMMMMMMMMMM"  # 4
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "BBBBMMM.XM--MMMM"
    "jjjjjjjjjjjjjjjj"  # 8
    "MMMMMMMMMMMMMMMM"
    "...MBMMM...MBMMM"
    "MMMMMMMMMMBMMMMM"
    "MMBMBBBM........"  # c
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
)
# Mandatory prefixes: none, 66, f3, f2.
_NP, _66, _F3, _F2 = range(4)
_MANDATORY_0F: Final[Mapping[int, frozenset[int]]] = {
    **dict.fromkeys((0x6C, 0x6D), frozenset({_66})),
    **dict.fromkeys((0x7C, 0x7D, 0xD0), frozenset({_66, _F2})),
    **dict.fromkeys((0xD6, 0xE6), frozenset({_66, _F3, _F2})),
    0xB8: frozenset({_F3}),
    0xF0: frozenset({_F2}),
}
# Opcodes behind 0f that exist with a register only if they have a prefix: extrq, insertq, movq2dq, movdq2q.
_REGISTER_ONLY: Final = frozenset({(0x78, _66), (0x78, _F2), (0xD6, _F3), (0xD6, _F2)})
# (Map, opcode) -> the register fields that exist: of an operand in memory, of one in a register.
_ALL: Final = "01234567"
_EVERY: Final = (_ALL, _ALL)
_GROUPS: Final[Mapping[tuple[int, int], tuple[str, str]]] = {
    (0, 0x8C): ("012345", "012345"),
    (0, 0x8D): (_ALL, ""),
    (0, 0x8E): ("012345", "012345"),
    (0, 0x8F): ("0", "0"),
    (0, 0xC6): ("0", "07"),
    (0, 0xC7): ("0", "07"),
    (0, 0xD9): ("0234567", _ALL),
    (0, 0xDA): (_ALL, "01235"),
    (0, 0xDB): ("012357", "0123456"),
    (0, 0xDD): ("0123467", "012345"),
    (0, 0xDF): (_ALL, "0123456"),
    (0, 0xFE): ("01", "01"),
    (0, 0xFF): ("0123456", "01246"),
    (1, 0x00): ("0123456", "0123456"),
    **{(1, store): (_ALL, "") for store in bytes.fromhex("13172bb2b4b5c3e7")},
    **{(1, mask): ("", _ALL) for mask in bytes.fromhex("50c5d7f7")},
    (1, 0x20): ("0234", "0234"),
    (1, 0x22): ("0234", "0234"),
    (1, 0x71): ("", "246"),
    (1, 0x72): ("", "246"),
    (1, 0x73): ("", "2367"),
    (1, 0xA6): ("", _ALL),  # PadLock
    (1, 0xA7): ("", _ALL),
    (1, 0xBA): ("4567", "4567"),
    (1, 0xC7): ("134567", "67"),
}
_3DNOW: Final = bytes.fromhex("0c0d1c1d8a8e909496979a9ea0a4a6a7aaaeb0b4b6b7bbbf")


def opcodes(text: str) -> frozenset[int]:
    """Return the opcodes of a row: `10-12 2a`."""
    ends = (part.partition("-") for part in text.split())
    return frozenset(opcode for first, _, last in ends for opcode in range(int(first, 16), int(last or first, 16) + 1))


# The opcodes of a map, by mandatory prefix.
Map = tuple[frozenset[int], frozenset[int], frozenset[int], frozenset[int]]


def opcode_map(none: str, prefix_66: str, prefix_f3: str, prefix_f2: str) -> Map:
    """Return a map by its rows for each mandatory prefix."""
    return opcodes(none), opcodes(prefix_66), opcodes(prefix_f3), opcodes(prefix_f2)


def _plain(row: str) -> Map:
    return opcode_map(row, "", "", "")


_OLD_0F38: Final = "00-0b 1c-1e 8a-8b c8-cd f0-f1 f6 f9 fc"
_0F38: Final = opcode_map(
    _OLD_0F38,
    f"{_OLD_0F38} 10 14-15 17 20-25 28-2b 30-35 37-41 80-82 cf db-df f5 f8",
    f"{_OLD_0F38} d8 dc-df f8 fa-fb",
    f"{_OLD_0F38} f8",
)
# In 64-bit code only.
_MOVRS: Final = opcodes("8a-8b")
_0F3A: Final = opcode_map("0f cc", "08-0f 14-17 20-22 40-42 44 60-63 cc ce-cf df", "0f cc f0", "0f cc")
_VEX: Final[Mapping[int, Map]] = {
    1: opcode_map(
        "10-17 28-29 2b 2e-2f 41-42 44-47 4a-4b 50-5f 77 90-93 98-99 ae c2 c6",
        "10-17 28-29 2b 2e-2f 41-42 44-47 4a-4b 50-51 54-76 7c-7f 90-93 98-99 c2 c4-c6 d0-ef f1-fe",
        "10-12 16 2a 2c-2d 51-53 58-5f 6f-70 7e-7f c2 e6",
        "10-12 2a 2c-2d 51 58-5a 5c-5f 70 7c-7d 92-93 c2 d0 e6 f0",
    ),
    2: opcode_map(
        "49 50-51 5e 6c b0 d2-d3 da f2-f3 f5 f7",
        "00-0f 13 16-1a 1c-1e 20-25 28-41 45-4b 50-53 58-5a 5e 6c 78-79 8c 8e 90-93 96-9f a6-b1 b4-bf cf d2-d3 da-ef "
        "f7",
        "4b 50-51 5c 5e 72 b0-b1 d2-d3 da f5 f7",
        "49-4b 50-51 5c 5e b0 cb-cd da f5-f7",
    ),
    3: opcode_map(
        "",
        "00-02 04-06 08-0f 14-19 1d 20-22 30-33 38-39 40-42 44 46 48-4c 5c-63 68-6f 78-7f ce-cf de-df",
        "",
        "f0",
    ),
    5: opcode_map("fd", "fd", "fd", "fd"),
    7: opcode_map("", "", "f6 f8", "f6 f8"),
}
_EVEX: Final[Mapping[int, Map]] = {
    1: opcode_map(
        "10-17 28-29 2b 2e-2f 51 54-5f 78-79 90-93 c2 c6",
        "10-17 28-29 2b 2e-2f 51 54-76 78-7b 7e-7f 90-93 c2 c4-c6 d1-d6 d8-ef f1-f6 f8-fe",
        "10-12 16 2a 2c-2f 51 58-5f 6f-70 78-7b 7e-7f c2 e6",
        "10-12 2a 2c-2f 51 58-5a 5c-5f 6f-70 78-7b 7f 92-93 c2 e6",
    ),
    2: opcode_map(
        "49 50-52 6d 74 d2-d3 f2-f3 f5 f7",
        "00 04 0b-0d 10-16 18-2d 30-40 42-47 49-55 58-5b 62-67 6d 70-73 75-7f 83 88-8b 8d 8f-93 96-9f a0-a3 a6-af "
        "b4-bf c4 c6-c8 ca-cd cf d2-d3 dc-ef f2-f3 f5 f7",
        "10-15 20-2a 30-35 38-3a 4a-4b 50-52 6d 72 74 d2-d3 da f5 f7",
        "4a-4b 50-53 68 6d 72 74 9a-9b aa-ab da f5-f7",
    ),
    3: opcode_map(
        "07-08 0a 26-27 52-53 56-57 66-67 c2",
        "00-01 03-05 07-0b 0f 14-1b 1d-23 25-27 38-3b 3e-3f 42-44 50-57 66-67 70-73 ce-cf",
        "07 42 77 c2",
        "07-08 26 52 56 66 77 c2 f0",
    ),
    4: opcode_map(
        "00-03 08-0b 10-13 18-1b 20-24 28-2c 30-33 38-3b 40-4f 60-61 66 69 6b 80-81 83-85 88 8a-8b 8f a5 ad af c0-c1 "
        "d0-d3 f0-f1 f4-f7 f9 fc fe-ff",
        "00-03 08-0b 10-13 18-1b 20-24 28-2c 30-33 38-3b 40-4f 60-61 65-66 69 6b 80-81 83-85 88 8b 8f a5 ad af c0-c1 "
        "d0-d3 f0-f1 f4-f9 fc fe-ff",
        "00-03 08-0b 20-24 28-2c 30-33 40-4f 66 69 6b 80-81 83 88 a5 ad af c0-c1 d0-d3 f0-f2 f4-f8 fc fe-ff",
        "00-03 08-0b 20-24 28-2c 30-33 40-4f 69 6b 80-81 83 88 a5 ad af c0-c1 d0-d3 f4-f8 fc fe-ff",
    ),
    5: opcode_map(
        "18 1b 1d 2e-2f 51 58-5f 68-6d 74 78-79 7c-7d",
        "1d 2f 51 58-5f 68-6e 78-7e",
        "10-11 18 1b 2a 2c-2f 51 58-5f 6c-6f 74 78-79 7b 7d-7e",
        "18 1b 1e 5a 68-6d 6f 74 7a 7d",
    ),
    6: opcode_map(
        "13 2c 42 4c 4e 98 9a 9c 9e a8 aa ac ae b8 ba bc be",
        "13 2c-2d 42-43 4c-4f 96-9f a6-af b6-bf",
        "56-57 d6-d7",
        "56-57 d6-d7",
    ),
    7: opcode_map("", "", "f6 f8", "f6 f8"),
}
_XOP: Final[Mapping[int, Map]] = {
    8: _plain("85-87 8e-8f 95-97 9e-9f a2-a3 a6 b6 c0-c3 cc-cf ec-ef"),
    9: _plain("01-02 12 80-83 90-9b c1-c3 c6-c7 cb d1-d3 d6-d7 db e1-e3"),
    10: _plain("10 12"),
}
_IMMEDIATES_OF_MAP_1: Final = opcodes("70-73 c2 c4-c6")
# Maps all of whose instructions have immediates.
_IMMEDIATES_OF_MAPS: Final[Mapping[int, int]] = {3: 1, 7: 4, 8: 1, 10: 4}
# Map 4 of EVEX: the old instructions with a third operand.  They have the immediates of the one-byte map, and those of
# shld and shrd.
_OLD_MAP: Final = 4
_DOUBLE_SHIFTS: Final = opcodes("24 2c")
_IMMEDIATES_OF_OLD_MAP: Final = opcodes("24 2c 69 6b 80-81 83 c0-c1 f6-f7")
_BMI: Final = frozenset({(2, 0xF2), (2, 0xF3), (2, 0xF5)})
_TILES: Final = frozenset({(2, 0x49), (2, 0x4A), (2, 0x4B)})
_VZEROUPPER: Final = 0x77
# XOP is pop with a reg that pop has not.
XOP, EVEX, VEX = 0x8F, 0x62, frozenset({0xC4, 0xC5})
_FIRST_XOP: Final = 8
# First byte -> offset of the opcode, of the byte with the map, of the byte with the prefix.
_VECTORS: Final = {0xC5: (2, 0, 1), 0xC4: (3, 1, 2), 0x62: (4, 1, 2), XOP: (3, 1, 2)}


class Maps(NamedTuple):
    """The opcode maps of a decoder."""

    two_bytes: str
    mandatory: Mapping[int, frozenset[int]]
    """By the opcode behind 0f: the prefixes with which it exists, if not with all."""
    groups: Mapping[tuple[int, int], tuple[str, str]]
    behind_38: Map
    behind_3a: Map
    vex: Mapping[int, Map]
    evex: Mapping[int, Map]
    xop: Mapping[int, Map]


CPU: Final = Maps(_TWO_BYTES, _MANDATORY_0F, _GROUPS, _0F38, _0F3A, _VEX, _EVEX, _XOP)
SEGMENTS: Final = {0x26: "es", 0x2E: "cs", 0x36: "ss", 0x3E: "ds", 0x64: "fs", 0x65: "gs"}
PREFIXES: Final = frozenset({*SEGMENTS, 0x66, 0x67, 0xF0, 0xF2, 0xF3})
_OPERAND_SIZE, _ADDRESS_SIZE = 0x66, 0x67
_REPEATS: Final = {0xF3: _F3, 0xF2: _F2}
_ESCAPE, _REX2, _JMPABS = 0x0F, 0xD5, 0xA1
_REX, _WIDE = 4, 8
# REX2 stands before no opcode of these rows of the one-byte map (jmpabs is the exception), and of 0f.
_NOT_BEHIND_REX2: Final = (frozenset({0x4, 0x7, 0xA, 0xE}), frozenset({0x3, 0x8}))


class Parts(NamedTuple):
    """Offsets of the parts of an instruction; -1 for a part that it lacks."""

    length: int
    start: int
    """The first byte behind the prefixes: the opcode, its escape, or VEX, EVEX, XOP or REX2."""
    rex: int = -1
    """REX, if it is the last prefix: elsewhere it is void."""
    vector: int = -1
    """The opcode behind VEX, EVEX or XOP."""
    modrm: int = -1
    read: int = LONGEST
    """How many bytes decide the length."""


class _Sizes(NamedTuple):
    """The operand and address sizes that the prefixes of an instruction make."""

    long: bool
    narrow: bool
    wide: bool
    other_address: bool
    """A prefix makes the address size another one than that of the mode."""

    def immediate(self, size: int | str) -> int:
        """Return the bytes of an immediate of a size of `_KINDS`."""
        if isinstance(size, int):
            return size
        word = 2 if self.narrow and not self.wide else 4
        if size == "a":
            return (8 if self.long else 4) >> self.other_address
        return {"z": word, "v": 8 if self.wide else word, "j": 4 if self.long else word, "f": word + 2}[size]

    def address(self, code: bytes, at: int) -> tuple[int, int]:
        """Return the offset behind a ModRM byte and what addresses memory; behind what decides it.

        Raises IndexError if the code ends before.
        """
        modrm = code[at]
        mod, rm = modrm >> 6, modrm & 7
        at += 1
        if mod == 3:
            return at, at
        if self.other_address and not self.long:
            return at + (2 if mod == 2 or (mod == 0 and rm == 6) else mod), at
        if rm == 4:
            rm = code[at] & 7
            at += 1
        return at + (4 if mod == 2 or (mod == 0 and rm == 5) else mod), at


class Prefixes(NamedTuple):
    """The prefixes of an instruction."""

    end: int
    """Offset of the byte behind them."""
    rex: int
    """Offset of REX, if it is the last; -1: there is none."""
    mandatory: int
    """The one that selects an opcode: the last of f2 and f3, or else 66."""


def find_prefixes(code: bytes, *, long: bool) -> Prefixes:
    """Return the prefixes that begin `code`.  Raises IndexError if nothing follows them."""
    at, rex, mandatory = 0, -1, _NP
    while True:
        byte = code[at]
        if byte in PREFIXES:
            if byte in _REPEATS:
                mandatory = _REPEATS[byte]
            elif byte == _OPERAND_SIZE and mandatory == _NP:
                mandatory = _66
            rex = -1
        elif long and byte >> 4 == _REX:
            rex = at
        else:
            return Prefixes(at, rex, mandatory)
        at += 1


def find_layout(code: bytes, *, long: bool, maps: Maps = CPU) -> Parts | None:
    """Return the layout of the instruction that begins `code`; None: there is none, or part of one.

    `long`: it is 64-bit code; otherwise 32-bit code.  `maps`: those of another decoder.
    """
    try:
        prefixes = find_prefixes(code[:LONGEST], long=long)
        found = _behind(code, prefixes, maps, long=long)
    except IndexError:  # the code ends before the instruction
        return None
    return found if found is not None and found.length <= min(len(code), LONGEST) else None


def _behind(code: bytes, prefixes: Prefixes, maps: Maps, *, long: bool) -> Parts | None:
    """Return the layout of what stands behind some prefixes."""
    at, rex, mandatory = prefixes
    seen = code[:at]
    sizes = _Sizes(long, _OPERAND_SIZE in seen, rex >= 0 and bool(code[rex] & _WIDE), _ADDRESS_SIZE in seen)
    byte = code[at]
    found = Parts(0, at, rex)
    if byte in _VECTORS:
        # Otherwise it is pop, or bound, les or lds of 32-bit code.
        following = code[at + 1]
        if following & 0x1F >= _FIRST_XOP if byte == XOP else long or following >> 6 == 3:
            return _vector(code, found, sizes, maps)
    table = 0
    if byte == _REX2 and long:
        table, wide = code[at + 1] >> 7, bool(code[at + 1] & _WIDE)
        at += 2
        opcode = code[at]
        if opcode == _JMPABS and not table and not wide and rex < 0:
            return found._replace(length=at + 9, read=at + 1)
        if opcode >> 4 in _NOT_BEHIND_REX2[table] or opcode == _ESCAPE or rex >= 0:
            return None
        sizes = sizes._replace(wide=wide)
    elif byte == _ESCAPE:
        table = 1
        at += 1
    if table and code[at] in {0x38, 0x3A}:
        return _three_bytes(code, at, found, sizes, maps, mandatory)
    return _legacy(code, at, found, sizes, maps, (table, mandatory))


def _legacy(code: bytes, at: int, found: Parts, sizes: _Sizes, maps: Maps, selected: tuple[int, int]) -> Parts | None:
    """Return the layout of an instruction of a map and prefix: of the one-byte map, or of 0f."""
    table, mandatory = selected
    opcode = code[at]
    kind = (maps.two_bytes if table else _ONE_BYTE)[opcode]
    if kind in "-!" or (not table and sizes.long and opcode in _NOT_IN_LONG_MODE):
        return None
    if table and mandatory not in maps.mandatory.get(opcode, (mandatory,)):
        return None
    at += 1
    has_modrm, size = _KINDS[kind]
    if not has_modrm:
        return found._replace(length=at + sizes.immediate(size), read=at)
    extension, in_register = code[at] >> 3 & 7, code[at] >> 6 == 3
    if str(extension) not in maps.groups.get((table, opcode), _EVERY)[in_register]:
        return None
    end, read = (at + 1, at + 1) if kind in "CS" else sizes.address(code, at)
    if table and maps is CPU and (opcode, mandatory) in _REGISTER_ONLY and not in_register:
        return None
    if kind == "X" and mandatory in {_66, _F2}:
        size = 2
    elif kind in "gh" and extension > 1:
        size = 0
    elif kind == "D":
        read = end + 1
        if code[end] not in _3DNOW:
            return None
    return found._replace(length=end + sizes.immediate(size), modrm=at, read=read)


def _three_bytes(code: bytes, at: int, found: Parts, sizes: _Sizes, maps: Maps, mandatory: int) -> Parts | None:
    """Return the layout of an instruction behind 0f 38 or 0f 3a."""
    immediate, opcode = code[at] == 0x3A, code[at + 1]
    if opcode not in (maps.behind_3a if immediate else maps.behind_38)[mandatory]:
        return None
    if opcode in _MOVRS and not sizes.long:
        return None
    end, read = sizes.address(code, at + 2)
    return found._replace(length=end + immediate, modrm=at + 2, read=read)


def _vector(code: bytes, found: Parts, sizes: _Sizes, maps: Maps) -> Parts | None:
    """Return the layout of an instruction behind VEX, EVEX or XOP."""
    start = found.start
    evex, vex = code[start] == EVEX, code[start] in VEX
    known = maps.evex if evex else maps.vex if vex else maps.xop
    to_opcode, to_map, to_prefix = _VECTORS[code[start]]
    table = code[start + to_map] & (7 if evex else 0x1F) if to_map else 1
    mandatory = code[start + to_prefix] & 3
    at = start + to_opcode
    opcode = code[at]
    if table not in known or opcode not in known[table][mandatory]:
        return None
    if not sizes.long and ((evex and (table == _OLD_MAP or (table, opcode) in _BMI)) or (table, opcode) in _TILES):
        return None  # APX and AMX are of 64-bit code
    modrm = at + 1
    if vex and table == 1 and opcode == _VZEROUPPER:
        return found._replace(length=modrm, vector=at, read=modrm)
    size: int | str = _IMMEDIATES_OF_MAPS.get(table, 0)
    if table == 1 and opcode in _IMMEDIATES_OF_MAP_1:
        size = 1
    elif table == _OLD_MAP and evex and opcode in _IMMEDIATES_OF_OLD_MAP:
        kind = _ONE_BYTE[opcode] if opcode not in _DOUBLE_SHIFTS else "B"
        size = _KINDS[kind][1]
        if kind in "gh" and code[modrm] >> 3 & 7 > 1:
            size = 0
        elif kind in "gh" and mandatory in {_F3, _F2}:
            return None
        sizes = sizes._replace(narrow=mandatory == _66, wide=bool(code[start + to_prefix] >> 7))
    end, read = sizes.address(code, modrm)
    return found._replace(length=end + sizes.immediate(size), vector=at, modrm=modrm, read=read)


# 32-bit and 64-bit code: the bytes that decide a length -> the length.
_KNOWN: Final[tuple[dict[bytes, int], dict[bytes, int]]] = ({}, {})
_MOST_KNOWN: Final = 1 << 16
# The bytes that decide most lengths: REX, opcode, ModRM; and a SIB byte.
_FEW, _MORE = 3, 4


def find_length(code: bytes, *, long: bool, at: int = 0) -> int:
    """Return the length of the instruction at an offset; 0: it is none, or not all of it is there."""
    known = _KNOWN[long]
    length = known.get(code[at : at + _FEW]) or known.get(code[at : at + _MORE])
    if length:
        return length if at + length <= len(code) else 0
    found = find_layout(code[at : at + LONGEST], long=long)
    if found is None:
        return 0
    if len(known) >= _MOST_KNOWN:
        known.clear()
    for size in (_FEW, _MORE):
        if found.read <= size <= len(code) - at:
            known[code[at : at + size]] = found.length
            break
    return found.length


def find_lengths(code: bytes, *, long: bool) -> tuple[int, ...]:
    """Return the length of each instruction, up to the first bytes that are none."""
    known = _KNOWN[long]
    found: list[int] = []
    at, sure = 0, len(code) - LONGEST
    while True:
        # Most instructions are not the last one, and known.
        length = known.get(code[at : at + _FEW], 0) if at < sure else 0
        length = length or find_length(code, long=long, at=at)
        if not length:
            return tuple(found)
        found.append(length)
        at += length
