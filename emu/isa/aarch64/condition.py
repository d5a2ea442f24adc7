"""AArch64 condition codes: eq, ne, cs ... al, nv (Arm ARM, C1.2.4)."""

from __future__ import annotations

from typing import Final

N: Final = 1 << 31
Z: Final = 1 << 30
C: Final = 1 << 29
V: Final = 1 << 28

# The assembler's name of each condition, and the flags that it tests.
NAMES: Final = (
    "eq (Z)", "ne (not Z)", "cs (C)", "cc (not C)", "mi (N)", "pl (not N)", "vs (V)", "vc (not V)",
    "hi (C and not Z)", "ls (not C, or Z)", "ge (N is V)", "lt (N is not V)",
    "gt (not Z, and N is V)", "le (Z, or N is not V)", "al (always)", "nv (always)",
)  # fmt: skip


def condition(number: int, flags: int) -> bool:
    """Return whether condition `number` (0: eq, 1: ne ... 14: al) holds in these flags."""
    negative, zero, carry, overflow = (bool(flags & bit) for bit in (N, Z, C, V))
    questions = (
        zero,
        carry,
        negative,
        overflow,
        carry and not zero,
        negative is overflow,
        negative is overflow and not zero,
        True,
    )
    yes = questions[number >> 1]
    return yes if number >> 1 == 7 else yes is not bool(number & 1)
