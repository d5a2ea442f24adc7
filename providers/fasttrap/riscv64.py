"""Fasttrap on RISC-V: no real system has it, so it follows the principles of the others.

Instructions that use an address relative to the pc or transfer control are emulated, including
their compressed forms.  Instructions that cannot be moved are refused.  All others run out of line.
Encodings: RISC-V unprivileged specification, chapters 2 and 16.
"""

from __future__ import annotations

import re
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
from emu.displaced.plans import Compare, Plan, Set
from emu.isa.riscv64.instruction import instruction_length, words
from emu.isa.riscv64.plans import (
    auipc,
    b_immediate,
    branch,
    c_branch,
    c_j,
    c_jump,
    cb_immediate,
    cj_immediate,
    j_immediate,
    jal,
    jalr,
)
from emu.isa.riscv64.traps import C_EBREAK, EBREAK
from providers.fasttrap.port import Port
from providers.fidelity import Fidelity
from providers.sequences import REACH, Kind, is_between

_SPEC: Final = "RISC-V unprivileged specification"
# The mask of lr and sc, which ignores the width.
_EXCLUSIVE: Final = 0xF800607F
_LR: Final = 0x1000202F
_SC: Final = 0x1800202F
LR, SC = (_EXCLUSIVE, _LR), (_EXCLUSIVE, _SC)


def _emulated(
    name: str, mask: int, value: int, length: int, plan: Callable[[Displaced], Plan], why: str
) -> DisplacedRow:
    return DisplacedRow(name, mask, value, length, plan, why=why, source=_SPEC)


def _refused(name: str, mask: int, value: int, length: int, why: str, source: str = _SPEC) -> DisplacedRow:
    return DisplacedRow(name, mask, value, length, Otherwise.REFUSE, why=why, source=source)


_JUMPS: Final = "it transfers control"
_RESERVED: Final = "the encoding is reserved"
RESERVATION: Final = "lr and sc belong together: a trap at either loses the reservation"
_COMMON: Final = "it does the same at any address"
_SIMULATOR: Final = "this simulator"
TABLE: Final = DisplacedTable((
    _refused("EBREAK", 0xFFFFFFFF, EBREAK, 4, "it is a breakpoint", _SIMULATOR),
    _refused("C_EBREAK", 0xFFFF, C_EBREAK, 2, "it is a breakpoint", _SIMULATOR),
    _refused("C_UNIMP", 0xFFFF, 0x0000, 2, "the encoding is defined to be illegal"),
    _refused("LR", _EXCLUSIVE, _LR, 4, RESERVATION),
    _refused("SC", _EXCLUSIVE, _SC, 4, RESERVATION),
    _refused("BRANCH, reserved", 0x607F, 0x2063, 4, _RESERVED),
    _emulated("BRANCH", 0x7F, 0x63, 4, branch, _JUMPS),
    _emulated("JAL", 0x7F, 0x6F, 4, jal, _JUMPS),
    _emulated("JALR", 0x707F, 0x67, 4, jalr, _JUMPS),
    _refused("JALR, reserved", 0x7F, 0x67, 4, _RESERVED),
    _emulated("AUIPC", 0x7F, 0x17, 4, auipc, "it uses an address relative to the pc"),
    _emulated("C_J", 0xE003, 0xA001, 2, c_j, _JUMPS),
    _refused("C_JR, reserved", 0xFFFF, 0x8002, 2, _RESERVED),
    _emulated("C_JR", 0xE07F, 0x8002, 2, c_jump, _JUMPS),
    _emulated("C_BEQZ", 0xE003, 0xC001, 2, c_branch(Compare.EQ), _JUMPS),
    _emulated("C_BNEZ", 0xE003, 0xE001, 2, c_branch(Compare.NE), _JUMPS),
    _emulated("NOP", 0xFFFFFFFF, 0x00000013, 4, lambda _: Plan((Set("pc", "pc", 4),)), "it does nothing"),
    _emulated("C_NOP", 0xFFFF, 0x0001, 2, lambda _: Plan((Set("pc", "pc", 2),)), "it does nothing"),
    DisplacedRow("COMMON", 0x3, 0x3, 4, Otherwise.OUT_OF_LINE, why=_COMMON, source=_SIMULATOR),
    DisplacedRow("C_COMMON", 0, 0, 2, Otherwise.OUT_OF_LINE, why=_COMMON, source=_SIMULATOR),
), by_code=False)  # fmt: skip
MALFORMED: Final = Rule("MALFORMED", "the bytes are not an instruction", _SPEC)
IN_SEQUENCE: Final = Rule("IN_SEQUENCE", "it is between lr and sc: a trap there makes sc fail forever", _SIMULATOR)
# ret and c.ret: jumps to ra without a link.
_RETURNS: Final = frozenset({(4, 0x00008067), (2, 0x8082)})
# The jumps relative to the pc without a link: length, mask, value, distance in bytes.
_BRANCHES: Final = (
    (4, 0x7F, 0x63, b_immediate),  # beq and its like
    (4, 0xFFF, 0x6F, j_immediate),  # jal without a link: a tail call
    (2, 0xE003, 0xA001, cj_immediate),  # c.j
    (2, 0xC003, 0xC001, cb_immediate),  # c.beqz, c.bnez
)

_ALWAYS: Final = (j_immediate, cj_immediate)

# The lowest byte of lr, sc and all atomic instructions.
_ATOMIC: Final = re.compile(rb"[\x2f\xaf]")


def _word(code: bytes) -> tuple[int, int]:
    length = instruction_length(code)
    return length, int.from_bytes(code[:length], "little")


def _kind(word: int) -> Kind:
    return {_LR: Kind.LOAD, _SC: Kind.STORE}.get(word & _EXCLUSIVE, Kind.OTHER)


def _loads(code: bytes) -> Iterator[int]:
    """Yield the offsets of lr; the code may begin within an instruction."""
    for found in _ATOMIC.finditer(code):
        at = found.start()
        if at % 2 == 0 and _kind(int.from_bytes(code[at : at + 4], "little")) is Kind.LOAD:
            yield at


def _read(code: bytes, at: int) -> tuple[Kind, Sequence[int]]:
    length, word = _word(code[at : at + 4])
    if not length or (length, word) in _RETURNS or _is_register_jump(length, word):
        return Kind.OTHER, ()
    found = next((field for of, mask, value, field in _BRANCHES if of == length and word & mask == value), None)
    if found is None:
        return _kind(word) if length == 4 else Kind.OTHER, (at + length,)
    target = at + found(Displaced(word, 0))
    return Kind.OTHER, (target,) if found in _ALWAYS else (at + length, target)


def in_sequence(code: Code) -> bool:
    """Return whether an instruction is between lr and its sc."""
    return is_between(code, _loads, _read)


def _treat(code: Code, fidelity: Fidelity) -> Decision:
    """Decide about an instruction."""
    del fidelity  # there is no real system that could differ
    length, word = _word(code.data)
    if not length:
        return Refused(MALFORMED)
    found = TABLE.decide(code.data[:length], code.address)
    if not isinstance(found, Refused) and in_sequence(code):
        return Refused(IN_SEQUENCE)
    if isinstance(found, Emulated) and (length, word) in _RETURNS:
        return replace(found, leaves=True)
    return found


def _chunk(move: OutOfLine, _at: int, _after: int) -> bytes:
    return move.code + EBREAK.to_bytes(4, "little")


def _boundaries(code: bytes) -> Iterator[int]:
    return (offset for offset, _, _ in words(code))


def _is_register_jump(length: int, word: int) -> bool:
    """Return whether it is jalr or c.jr without a link."""
    return word & 0x7FFF == 0x67 if length == 4 else word & 0xF07F == 0x8002 and word != 0x8002


def _returns(code: bytes, address: int, fidelity: Fidelity) -> Iterator[int]:
    size = len(code)
    for offset, length, word in words(code):
        # A jump through a register may leave the function: each hit decides whether it does.
        if (length, word) in _RETURNS or (fidelity is not Fidelity.FREEBSD and _is_register_jump(length, word)):
            yield offset
            continue
        immediate = next((field for of, mask, value, field in _BRANCHES if of == length and word & mask == value), None)
        if immediate is not None and not 0 <= offset + immediate(Displaced(word, address + offset)) < size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda length: (C_EBREAK if length == 2 else EBREAK).to_bytes(length, "little"),
    longest=4,
    treat=_treat,
    returns=_returns,
    boundaries=_boundaries,
    arguments=("a0", "a1", "a2", "a3", "a4"),
    late_arguments=("a5", "a6", "a7"),
    stack_skip=0,
    results=("a0",),
    chunk=_chunk,
    copies=1,
    second_copy=lambda _move: 0,
    trap_offset=lambda move: len(move.code),
    always_steps=True,
    around=REACH,
)
