"""x86-64 condition codes: the low four bits of jcc's opcode (Intel SDM volume 1, appendix B)."""

from __future__ import annotations

from typing import Final

CF: Final = 0x001
PF: Final = 0x004
ZF: Final = 0x040
SF: Final = 0x080
OF: Final = 0x800

# Each pair of codes asks one question and its opposite: o, b, e, be, s, p, l, le.
_ANY_OF: Final = (OF, CF, ZF, CF | ZF, SF, PF, 0, ZF)
_SIGNED: Final = frozenset({6, 7})

# The assembler's name of each condition (j<name>), and the flags that it tests.
NAMES: Final = (
    "o (OF)", "no (not OF)", "b (CF)", "ae (not CF)", "e (ZF)", "ne (not ZF)", "be (CF or ZF)", "a (neither CF nor ZF)",
    "s (SF)", "ns (not SF)", "p (PF)", "np (not PF)", "l (SF is not OF)", "ge (SF is OF)",
    "le (ZF, or SF is not OF)", "g (not ZF, and SF is OF)",
)  # fmt: skip


def condition(number: int, flags: int) -> bool:
    """Return whether condition `number` (0: o, 1: no ... 15: g) holds in these flags."""
    question = number >> 1
    yes = bool(flags & _ANY_OF[question]) or (question in _SIGNED and bool(flags & SF) is not bool(flags & OF))
    return yes is not bool(number & 1)
