"""rand(): xoroshiro128+, one generator per CPU.

Source: FreeBSD dtrace.c dtrace_xoroshiro128_plus_next(), dtrace_xoroshiro128_plus_jump() (Blackman
and Vigna).  FreeBSD seeds it at random; here the seed is fixed, so that a run can be repeated.
"""

from __future__ import annotations

from typing import Final

from emu.support.plain import words
from emu.support.words import WORD_MASK

_SEED: Final = (0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9)
_JUMP: Final = (0xBEAC_0467_EBA5_FACB, 0xD86B_048B_86AA_9922)


class Xoroshiro:
    """The generator of one CPU: CPU k starts k times 2**64 numbers into the sequence."""

    def __init__(self, cpu: int) -> None:
        self.state = words(2)
        """Two words of plain memory, which machine code shares."""
        self.state[0], self.state[1] = _SEED
        for _ in range(cpu):
            self._jump()

    def next(self) -> int:
        """Return the next 64-bit number."""
        s0, s1 = self.state
        mixed = s0 ^ s1
        self.state[0] = (s0 << 55 | s0 >> 9) & WORD_MASK ^ mixed ^ (mixed << 14) & WORD_MASK
        self.state[1] = (mixed << 36 | mixed >> 28) & WORD_MASK
        return (s0 + s1) & WORD_MASK

    def _jump(self) -> None:
        """Skip 2**64 numbers."""
        s0 = s1 = 0
        for word in _JUMP:
            for bit in range(64):
                if word >> bit & 1:
                    s0 ^= self.state[0]
                    s1 ^= self.state[1]
                self.next()
        self.state[0], self.state[1] = s0, s1
