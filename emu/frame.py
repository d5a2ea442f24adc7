"""The interrupted context of a trap, as providers see it: registers and arguments by name.

`emu.trap_frames` has its two forms, and a provider cannot tell one from the other.
"""

from __future__ import annotations

from typing import Protocol

from emu.plans import Plan


class NamedRegisters(Protocol):
    """Registers that are kept somewhere."""

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one that is not kept."""
        ...


class Frame(NamedRegisters, Protocol):
    """The interrupted context, as providers read it.

    Values are unsigned, words are the ISA's.
    """

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments, as on entry to a function."""
        ...

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5 on function entry, as dtrace_getarg does.

        0 where FreeBSD does not look.
        """
        ...

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        ...

    def stack_word(self, index: int) -> int:
        """Return the word at sp + `index` words.  Raises `emu.bad_address.BadAddressError`."""
        ...

    def stack_words(self, first: int) -> tuple[int, int, int, int, int]:
        """Return five words of the stack from sp + `first` words on, 0 beyond its end."""
        ...

    def go_to(self, address: int, stub_adds: int = 0) -> None:
        """Make the context go on at an address.

        `stub_adds` is what the kernel's stub, if it is asked, will add.
        """
        ...

    def carry_out(self, plan: Plan, address: int, stub_adds: int = 0, scratch: int = 0) -> bool:
        """Do what a plan says instead of the instruction at an address.

        Returns True, except for a push where the context's own trap frame is in the way: then the
        word is left in scratch space for the stub.  Raises `emu.bad_address.BadAddressError`.
        """
        ...
