"""The extensions that the emulated CPU, an RV64GC, lacks.

Source: the RISC-V Instruction Set Manual, volume I.
"""

from __future__ import annotations

from typing import Final

from emu.isa.extensions import Extension

# Opcode, funct3 and funct7; and the same with the other source register's number.
_OPERATION: Final = 0xFE00707F
_UNARY: Final = 0xFFF0707F
_SHIFT: Final = 0xFC00707F

LACKS: Final = (
    *(Extension("Zba", _OPERATION, 0x20000033 | funct3 << 12 | word) for funct3 in (2, 4, 6) for word in (0, 8)),
    Extension("Zba", _OPERATION, 0x0800003B),  # add.uw
    Extension("Zba", _SHIFT, 0x0800101B),  # slli.uw
    *(Extension("Zbb", _OPERATION, 0x40000033 | funct3 << 12) for funct3 in (4, 6, 7)),  # xnor, orn, andn
    *(Extension("Zbb", _OPERATION, 0x0A000033 | funct3 << 12) for funct3 in (4, 5, 6, 7)),  # min, max
    *(Extension("Zbb", 0xFFF0707F, 0x60001013 | number << 20) for number in (0, 1, 2, 4, 5)),  # clz, sext.b
    *(Extension("Zbb", _UNARY, 0x6000101B | number << 20) for number in (0, 1, 2)),
    *(Extension("Zbb", _OPERATION, 0x60000033 | funct3 << 12 | word) for funct3 in (1, 5) for word in (0, 8)),
    *(Extension("Zbb", _SHIFT, 0x60005013 | word) for word in (0, 8)),  # rori
    Extension("Zbb", _UNARY, 0x6B805013),  # rev8
    Extension("Zbb", _UNARY, 0x28705013),  # orc.b
    Extension("Zbb", _UNARY, 0x0800403B),  # zext.h
    *(Extension("Zbc", _OPERATION, 0x0A000033 | funct3 << 12) for funct3 in (1, 2, 3)),
    *(Extension("Zbs", _OPERATION, value) for value in (0x48001033, 0x48005033, 0x68001033, 0x28001033)),
    *(Extension("Zbs", _SHIFT, value) for value in (0x48001013, 0x48005013, 0x68001013, 0x28001013)),
    *(Extension("Zicond", _OPERATION, 0x0E000033 | funct3 << 12) for funct3 in (5, 7)),
    Extension("V", 0x7F, 0x57),
    *(Extension("V", 0x707F, opcode | width << 12) for opcode in (0x07, 0x27) for width in (0, 5, 6, 7)),
    Extension("Zfh", 0x0600007F, 0x04000053),
    *(Extension("Zfh", 0x707F, opcode | 1 << 12) for opcode in (0x07, 0x27)),
    Extension("Zfa", 0xFFF0707F, 0xF0100053),  # fli.s
    Extension("Zacas", 0xF800007F, 0x2800002F),
    Extension("Zawrs", 0xFFFFFFFF, 0x00D00073),
    Extension("Zawrs", 0xFFFFFFFF, 0x01D00073),
    Extension("Zicbom or Zicboz", 0x707F, 0x200F),
    Extension("Zknh", 0xFE00707F, 0x10001013),
)
