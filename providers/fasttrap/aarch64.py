"""Fasttrap on AArch64, with brk where XNU has its undefined word.

Source: XNU bsd/dev/arm64/fasttrap_isa.c, disassembler.c (rows, in its order); the returns of
functions are found as by libdtrace on x86.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from emu.displaced.decision import (
    Code,
    Decision,
    Displaced,
    DisplacedRow,
    DisplacedTable,
    Emulated,
    Otherwise,
    OutOfLine,
    Refused,
    Rule,
)
from emu.displaced.plans import Compare, Plan
from emu.isa.aarch64.plans import (
    NOP,
    adr,
    adrp,
    b,
    bl,
    blr,
    br,
    compare_branch,
    conditional,
    load,
    load_vector,
    stp_frame,
    test_bit,
)
from emu.isa.aarch64.traps import BRK_DTRACE, NOP_WORD
from providers.fasttrap.port import Port
from providers.fidelity import Fidelity, by_fidelity
from providers.sequences import REACH, Kind, is_between

_XNU: Final = "XNU bsd/dev/arm64/disassembler.c"
_OURS: Final = "this simulator"
# The trap after a copy in scratch space: its immediate differs from the tracepoint's.
BRK_RETURN: Final = BRK_DTRACE | 1 << 5


def _emulated(name: str, mask: int, value: int, plan: Callable[[Displaced], Plan], why: str) -> DisplacedRow:
    return DisplacedRow(name, mask, value, 4, plan, why=why, source=_XNU)


def _refused(name: str, mask: int, value: int, why: str, source: str = _OURS) -> DisplacedRow:
    return DisplacedRow(name, mask, value, 4, Otherwise.REFUSE, why=why, source=source)


_READS: Final = "it reads from an address relative to the pc"
_JUMPS: Final = "it transfers control"
_NAMES: Final = "it uses an address relative to the pc"
_ROWS: Final = (
    _refused("BRK", 0xFFE0001F, 0xD4200000, "it is a breakpoint"),
    _emulated("STANDARD_FUNCTION_ENTRY", 0xFFFFFFFF, 0xA9BF7BFD, stp_frame, "most functions begin with it"),
    _emulated("LDR_S_PC_REL", 0xFF000000, 0x1C000000, load_vector(4), _READS),
    _emulated("LDR_W_PC_REL", 0xFF000000, 0x18000000, load(4), _READS),
    _emulated("LDR_D_PC_REL", 0xFF000000, 0x5C000000, load_vector(8), _READS),
    _emulated("LDR_X_PC_REL", 0xFF000000, 0x58000000, load(8), _READS),
    _emulated("LDR_Q_PC_REL", 0xFF000000, 0x9C000000, load_vector(16), _READS),
    _emulated("LDRSW_PC_REL", 0xFF000000, 0x98000000, load(4, signed=True), _READS),
    _emulated("B_COND", 0xFF000010, 0x54000000, conditional, _JUMPS),
    _emulated("CBNZ_W", 0xFF000000, 0x35000000, compare_branch(Compare.NE, 32), _JUMPS),
    _emulated("CBNZ_X", 0xFF000000, 0xB5000000, compare_branch(Compare.NE, 64), _JUMPS),
    _emulated("CBZ_W", 0xFF000000, 0x34000000, compare_branch(Compare.EQ, 32), _JUMPS),
    _emulated("CBZ_X", 0xFF000000, 0xB4000000, compare_branch(Compare.EQ, 64), _JUMPS),
    _emulated("TBNZ", 0x7F000000, 0x37000000, test_bit(Compare.BIT_SET), _JUMPS),
    _emulated("TBZ", 0x7F000000, 0x36000000, test_bit(Compare.BIT_CLEAR), _JUMPS),
    _emulated("B", 0xFC000000, 0x14000000, b, _JUMPS),
    _emulated("BL", 0xFC000000, 0x94000000, bl, _JUMPS),
    _emulated("BLR", 0xFFFFFC1F, 0xD63F0000, blr, _JUMPS),
    _emulated("BR", 0xFFFFFC1F, 0xD61F0000, br, _JUMPS),
    _emulated("RET", 0xFFFFFC1F, 0xD65F0000, br, _JUMPS),
    _emulated("ADRP", 0x9F000000, 0x90000000, adrp, _NAMES),
    _emulated("ADR", 0x9F000000, 0x10000000, adr, _NAMES),
    _emulated("PRFM_PC_REL", 0xFF000000, 0xD8000000, lambda _: NOP, _READS),
    _refused(
        "EXCLUSIVE_MEM", 0x3F800000, 0x08000000,
        "it reads or writes memory exclusively: a trap loses the reservation", _XNU,
    ),
    _emulated("NOP", 0xFFFFFFFF, NOP_WORD, lambda _: NOP, "it does nothing"),
    _refused("BRAA", 0xFEDFF800, 0xD61F0800, "braa, blraa and the like authenticate their target"),
    _refused("BC_COND", 0xFF000010, 0x54000010, "bc.cond is newer than XNU's table and than the CPU that is emulated"),
    _refused("RETAA", 0xFFFFFBFF, 0xD65F0BFF, "retaa and retab authenticate their target"),
    DisplacedRow(
        "COMMON", 0, 0, 4, Otherwise.OUT_OF_LINE, why="it does the same at any address", source=_XNU,
    ),
)  # fmt: skip
# XNU's masks that differ from the exact ones.  For br and blr it has one bit too many: x16 to x31 are not recognized,
# and run out of line.  For exclusives it has one bit too few: it also refuses ldar, stlr and cas, which have no state
# between instructions.
_XNU_MASKS: Final = {"BLR": 0xFFFFFE1F, "BR": 0xFFFFFE1F, "EXCLUSIVE_MEM": 0x3F000000}
TABLES: Final = by_fidelity(
    DisplacedTable(_ROWS, by_code=False),
    freebsd=DisplacedTable(
        tuple(replace(row, mask=_XNU_MASKS.get(row.name, row.mask)) for row in _ROWS), by_code=False
    ),
)
MALFORMED: Final = Rule("MALFORMED", "the bytes are not an instruction", _XNU)
IN_SEQUENCE: Final = Rule(
    "IN_SEQUENCE",
    "it is between a load-exclusive and its store-exclusive: a trap there makes the store fail forever",
    _OURS,
)
_EXCLUSIVE: Final = 0x3F000000, 0x08000000
# ret and br: any register.
_RETURN_MASK: Final = 0xFFFFFC1F
_RETURN: Final = 0xD65F0000
_JUMP: Final = 0xD61F0000
# The jumps relative to the pc: mask, value, the highest and the lowest bit of the distance in words.
_BRANCHES: Final = (
    (0xFC000000, 0x14000000, 25, 0),  # b
    (0xFF000010, 0x54000000, 23, 5),  # b.cond
    (0x7E000000, 0x34000000, 23, 5),  # cbz, cbnz
    (0x7E000000, 0x36000000, 18, 5),  # tbz, tbnz
)
# The highest bytes of all these instructions.
_MAY_LEAVE: Final = frozenset(
    top
    for top in range(256)
    for mask, value in ((_RETURN_MASK, _RETURN), (_RETURN_MASK, _JUMP), *(row[:2] for row in _BRANCHES))
    if top & mask >> 24 == value >> 24
)
# The upper byte of those words.
_EXCLUSIVE_BYTES: Final = re.compile(rb"[\x08\x48\x88\xc8]")
_LOAD: Final = 1 << 22
_ORDERED: Final = 1 << 23
_CLREX: Final = 0xFFFFF0FF, 0xD503305F


def _is_exclusive(word: int) -> bool:
    """Return whether a word is a load-exclusive or a store-exclusive.

    With bit 23 it is ldar, stlr or cas.
    """
    return word & _EXCLUSIVE[0] == _EXCLUSIVE[1] and not word & _ORDERED


def _loads(code: bytes) -> Iterator[int]:
    """Yield the offsets of load-exclusives."""
    for found in _EXCLUSIVE_BYTES.finditer(code):
        at = found.start() - 3
        if at >= 0 and at % 4 == 0 and _kind(int.from_bytes(code[at : at + 4], "little")) is Kind.LOAD:
            yield at


def _kind(word: int) -> Kind:
    if not _is_exclusive(word):
        return Kind.OTHER
    return Kind.LOAD if word & _LOAD else Kind.STORE


def _read(code: bytes, at: int) -> tuple[Kind, Sequence[int]]:
    word = int.from_bytes(code[at : at + 4], "little")
    if word & _RETURN_MASK in {_RETURN, _JUMP} or word & _CLREX[0] == _CLREX[1]:
        return Kind.OTHER, ()
    found = next((fields for mask, value, *fields in _BRANCHES if word & mask == value), None)
    if found is None:
        return _kind(word), (at + 4,)
    target = at + 4 * Displaced(word, 0).signed(*found)
    return Kind.OTHER, (target,) if word & _BRANCHES[0][0] == _BRANCHES[0][1] else (at + 4, target)


def in_sequence(code: Code) -> bool:
    """Return whether an instruction is between a load-exclusive and its store."""
    return is_between(code, _loads, _read)


def _treat(code: Code, fidelity: Fidelity) -> Decision:
    """Decide about an instruction (dtrace_decode_arm64)."""
    if len(code.data) < 4:
        return Refused(MALFORMED)
    word = int.from_bytes(code.data[:4], "little")
    if fidelity is not Fidelity.FREEBSD and not _is_exclusive(word) and in_sequence(code):
        return Refused(IN_SEQUENCE)
    found = TABLES[fidelity].decide(code.data, code.address)
    return replace(found, leaves=True) if isinstance(found, Emulated) and found.rule.name == "RET" else found


def _chunk(move: OutOfLine, _at: int, _after: int) -> bytes:
    return move.code + BRK_RETURN.to_bytes(4, "little")


def _returns(code: bytes, address: int, fidelity: Fidelity) -> Iterator[int]:
    size = len(code)
    for number, (word,) in enumerate(struct.iter_unpack("<I", code[: size & ~3])):
        if word >> 24 not in _MAY_LEAVE:
            continue
        offset = 4 * number
        # A jump through a register may leave the function: each hit decides whether it does.
        if word & _RETURN_MASK == _RETURN or (word & _RETURN_MASK == _JUMP and fidelity is not Fidelity.FREEBSD):
            yield offset
            continue
        insn = Displaced(word, address + offset)
        found = next((fields for mask, value, *fields in _BRANCHES if word & mask == value), None)
        if found is not None and not 0 <= offset + insn.signed(*found) * 4 < size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda _length: BRK_DTRACE.to_bytes(4, "little"),
    longest=4,
    treat=_treat,
    returns=_returns,
    boundaries=lambda code: iter(range(0, len(code) - 3, 4)),
    arguments=("x0", "x1", "x2", "x3", "x4"),
    late_arguments=("x5", "x6", "x7"),
    stack_skip=0,
    results=("x0",),
    chunk=_chunk,
    copies=1,
    second_copy=lambda _move: 0,
    trap_offset=lambda _move: 4,
    always_steps=True,
    around=REACH,
)
