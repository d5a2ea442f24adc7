"""Instructions that repeat themselves, and how often."""

from __future__ import annotations

from emu.support.immutable import immutable


@immutable
class Repetition:
    """The repetition of an instruction that counts `registers.counter` down to 0."""

    mask: int
    """The bits of the register that count."""
    condition: int | None = None
    """The number of the condition that must hold for the next repetition; None: the count alone
    decides."""


def no_repetition(code: bytes) -> Repetition | None:
    """Return None: no instruction of the ISA repeats itself."""
    del code
    return None
