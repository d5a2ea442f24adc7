"""The interrupted context of a trap, whichever way the trap was taken.

`LiveFrame` looks at the registers of the stopped CPU (host trap path); `SavedFrame` at a trap frame that the guest kernel's vector saved in
memory (guest trap path).  A provider cannot tell one from the other.
"""

from __future__ import annotations

from typing import Protocol


class Frame(Protocol):
    """What a provider may read of the interrupted context; values are unsigned 64-bit."""

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one this kind of frame does not hold."""
        ...

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments, as on entry to a function."""
        ...

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        ...

    def stack_word(self, index: int) -> int:
        """Return the 64-bit word at sp + 8 * index.  Raises `emu.guest.base.BadAddressError`."""
        ...
