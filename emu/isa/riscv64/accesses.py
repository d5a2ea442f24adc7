"""The memory operands of RV64GC's loads and stores (RISC-V unprivileged specification)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emu.displaced import Displaced
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.registers import GENERAL
from emu.words import WORD_MASK


def accesses(register: Callable[[str], int], code: bytes) -> Iterator[int]:
    """Yield the address that an instruction accesses: a base and an offset."""
    length = instruction_length(code)
    insn = Displaced(int.from_bytes(code[:length], "little"), 0)
    if length == 4:
        base = insn.bits(19, 15)
        offset = {0x03: insn.signed(31, 20), 0x07: insn.signed(31, 20), 0x2F: 0}.get(insn.bits(6, 0))
        if insn.bits(6, 0) in {0x23, 0x27}:
            offset = insn.signed(31, 25) << 5 | insn.bits(11, 7)
    elif insn.bits(1, 0) == 0:
        base = 8 + insn.bits(9, 7)
        word = insn.bits(12, 10) << 3 | insn.bits(6, 6) << 2 | insn.bits(5, 5) << 6
        double = insn.bits(12, 10) << 3 | insn.bits(6, 5) << 6
        offset = word if insn.bits(15, 13) in {2, 6} else double
    else:
        base = 2
        offsets = {
            1: insn.bits(12, 12) << 5 | insn.bits(6, 5) << 3 | insn.bits(4, 2) << 6,
            2: insn.bits(12, 12) << 5 | insn.bits(6, 4) << 2 | insn.bits(3, 2) << 6,
            3: insn.bits(12, 12) << 5 | insn.bits(6, 5) << 3 | insn.bits(4, 2) << 6,
            5: insn.bits(12, 10) << 3 | insn.bits(9, 7) << 6,
            6: insn.bits(12, 9) << 2 | insn.bits(8, 7) << 6,
            7: insn.bits(12, 10) << 3 | insn.bits(9, 7) << 6,
        }
        offset = offsets.get(insn.bits(15, 13))
    if offset is not None:
        yield register(GENERAL[base]) + offset & WORD_MASK
