"""The memory operands of RV64GC's loads and stores (RISC-V unprivileged specification)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.displaced.decision import Displaced
from emu.isa.riscv64.immediates import C_DOUBLE, C_LDSP, C_LWSP, C_SDSP, C_SWSP, C_WORD, I, S
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.registers import GENERAL
from emu.support.words import WORD_MASK

# Operation codes of loads and stores -> the offset; those of atomic instructions have none.
_OFFSETS: Final = {0x03: I, 0x07: I, 0x23: S, 0x27: S}
_ATOMIC: Final = 0x2F
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
