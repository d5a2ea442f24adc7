"""The instructions of RV64GC: lengths, immediates, events, memory operands.

Source: RISC-V unprivileged specification, 1.5 (lengths), chapters 2.3 and 16.2 (immediates).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from emu.displaced.decision import Displaced
from emu.isa.base import Events
from emu.isa.fields import Field
from emu.isa.riscv64.registers import GENERAL
from emu.support.words import WORD_MASK


def instruction_length(code: bytes) -> int:
    """Return 2 or 4, or 0 if there are fewer bytes than that."""
    if len(code) < 2:
        return 0
    length = 4 if code[0] & 3 == 3 else 2
    return length if len(code) >= length else 0


def words(code: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the offset, the length and the word of each whole instruction.

    The halfwords are read once, since pid scans whole objects; `instructions` of
    `emu.isa.disassembly` is for any ISA.
    """
    halves = struct.unpack(f"<{len(code) // 2}H", code[: len(code) & ~1])
    at = 0
    while at < len(halves):
        low = halves[at]
        if low & 3 != 3:
            yield 2 * at, 2, low
            at += 1
        elif at + 1 < len(halves):
            yield 2 * at, 4, low | halves[at + 1] << 16
            at += 2
        else:
            return


_LOAD, _STORE, _BRANCH, _NONE = Events.LOAD, Events.STORE, Events.BRANCH, Events(0)
# Operation codes (bits 6..0) of four bytes.
_OPCODES: Final = {0x03: _LOAD, 0x07: _LOAD, 0x23: _STORE, 0x27: _STORE, 0x63: _BRANCH, 0x67: _BRANCH, 0x6F: _BRANCH}
_ATOMIC: Final = 0x2F
# Bits 31..27 of lr and sc; the other atomic instructions load and store.
_ATOMICS: Final = {2: _LOAD, 3: _STORE}
# Bits 1..0 and 15..13 of two bytes.
_COMPRESSED: Final = {
    **dict.fromkeys([(0, 1), (0, 2), (0, 3), (2, 1), (2, 2), (2, 3)], _LOAD),
    **dict.fromkeys([(0, 5), (0, 6), (0, 7), (2, 5), (2, 6), (2, 7)], _STORE),
    **dict.fromkeys([(1, 5), (1, 6), (1, 7)], _BRANCH),
}
_REGISTER_JUMP: Final = (2, 4)


def events(code: bytes) -> Events:
    """Return the events of the instruction that starts these bytes."""
    length = instruction_length(code)
    word = int.from_bytes(code[:length], "little")
    if length == 4:
        if word & 0x7F == _ATOMIC:
            return _ATOMICS.get(word >> 27, _LOAD | _STORE)
        return _OPCODES.get(word & 0x7F, _NONE)
    kind = word & 3, word >> 13
    if kind == _REGISTER_JUMP:  # c.jr, c.jalr: rs1, and no rs2; else c.mv, c.add, c.ebreak
        return _BRANCH if word & 0xF80 and not word & 0x7C else _NONE
    return _COMPRESSED.get(kind, _NONE)


# The immediates of 32-bit instructions, by the specification's letters of their formats.
I: Final = Field(((31, 20, 0),), signed=True)  # noqa: E741  the name in the specification
S: Final = Field(((31, 25, 5), (11, 7, 0)), signed=True)
B: Final = Field(((31, 31, 12), (7, 7, 11), (30, 25, 5), (11, 8, 1)), signed=True)
U: Final = Field(((31, 12, 0),))
J: Final = Field(((31, 31, 20), (19, 12, 12), (20, 20, 11), (30, 21, 1)), signed=True)
SHIFT: Final = Field(((25, 20, 0),))
SHIFT_WORD: Final = Field(((24, 20, 0),))
CSR_NUMBER: Final = Field(((31, 20, 0),))
CSR_VALUE: Final = Field(((19, 15, 0),))

# The targets of compressed instructions: those of c.j, and of c.beqz and c.bnez.
CJ: Final = Field(
    ((12, 12, 11), (11, 11, 4), (10, 9, 8), (8, 8, 10), (7, 7, 6), (6, 6, 7), (5, 3, 1), (2, 2, 5)), signed=True
)
CB: Final = Field(((12, 12, 8), (11, 10, 3), (6, 5, 6), (4, 3, 1), (2, 2, 5)), signed=True)
# c.li, c.addi, c.andi: six bits; shifts have them without a sign; c.lui counts pages.
CI: Final = Field(((12, 12, 5), (6, 2, 0)), signed=True)
CI_NOT_ZERO: Final = Field(CI.parts, signed=True, nonzero=True)
C_SHIFT: Final = Field(CI.parts, nonzero=True)
C_ADDI16SP: Final = Field(((12, 12, 9), (6, 6, 4), (5, 5, 6), (4, 3, 7), (2, 2, 5)), signed=True, nonzero=True)
C_ADDI4SPN: Final = Field(((12, 11, 4), (10, 7, 6), (6, 6, 2), (5, 5, 3)), nonzero=True)
# Offsets from sp: loads of words and of doublewords, stores of both.
C_LWSP: Final = Field(((12, 12, 5), (6, 4, 2), (3, 2, 6)))
C_LDSP: Final = Field(((12, 12, 5), (6, 5, 3), (4, 2, 6)))
C_SWSP: Final = Field(((12, 9, 2), (8, 7, 6)))
C_SDSP: Final = Field(((12, 10, 3), (9, 7, 6)))
# Offsets from another register, for words and for doublewords.
C_WORD: Final = Field(((12, 10, 3), (6, 6, 2), (5, 5, 6)))
C_DOUBLE: Final = Field(((12, 10, 3), (6, 5, 6)))


# Operation codes of loads and stores -> the offset; those of atomic instructions have none.
_OFFSETS: Final = {0x03: I, 0x07: I, 0x23: S, 0x27: S}
# Bits 15..13 of a compressed load or store relative to sp -> its offset.
_FROM_SP: Final = {1: C_LDSP, 2: C_LWSP, 3: C_LDSP, 5: C_SDSP, 6: C_SWSP, 7: C_SDSP}


def accesses(register: Callable[[str], int], code: bytes) -> Iterator[int]:
    """Yield the address that an instruction accesses: a base and an offset."""
    length = instruction_length(code)
    insn = Displaced(int.from_bytes(code[:length], "little"), 0)
    if length == 4:
        base = insn.bits(19, 15)
        if insn.bits(6, 0) == _ATOMIC:
            yield register(GENERAL[base])
        offset = _OFFSETS.get(insn.bits(6, 0))
    elif insn.bits(1, 0) == 0:
        base = 8 + insn.bits(9, 7)
        offset = C_WORD if insn.bits(15, 13) in {2, 6} else C_DOUBLE
    else:
        base = 2
        offset = _FROM_SP.get(insn.bits(15, 13))
    if offset is not None:
        yield register(GENERAL[base]) + offset.read(insn) & WORD_MASK
