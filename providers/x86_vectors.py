"""Moving instructions of x86-64 with an operand relative to rip.

In the copy, another register takes the place of rip.

Source: Linux arch/x86/kernel/uprobes.c (riprel_analyze), which the exact rules of the pid provider
follow as well.
"""

from __future__ import annotations

from typing import Final

from emu.isa.x86.instruction import REGISTERS, Instruction

# First byte of a VEX prefix of two bytes.
_VEX2: Final = 0xC5
# rsi, rdi or rbx: no instruction with such an operand uses them without naming them.
_CANDIDATES: Final = (6, 7, 3)


def moved(insn: Instruction) -> tuple[bytes, str]:
    """Return the copy of a rip-relative instruction, and the register that replaces rip."""
    at = insn.relative_at
    assert at is not None
    code = bytearray(insn.data)
    other = code[at] >> 3 & 7
    used = {other}
    if insn.vector_at is not None:
        # vvvv, inverted: in the last byte of VEX, and in the third of EVEX and XOP.
        used.add(~(code[insn.at + (1 if insn.opcode == _VEX2 else 2)]) >> 3 & 7)
        if insn.opcode != _VEX2:
            code[insn.at + 1] |= 0x60  # X and B are inverted: none
    elif insn.rex & 1:
        code[insn.rex_at] &= ~1
    number = next(number for number in _CANDIDATES if number not in used)
    code[at] = 0x80 | other << 3 | number
    return bytes(code), REGISTERS[number]
