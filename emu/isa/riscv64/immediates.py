"""The immediates of RV64GC: where their bits are.

Source: RISC-V unprivileged specification, chapters 2.3 and 16.2.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fields import Field

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
