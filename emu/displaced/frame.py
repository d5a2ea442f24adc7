"""The interrupted context of a trap, as providers see it: registers and arguments by name.

`emu.probe.trap_frames` has its two forms, and a provider cannot tell one from the other.
"""

from __future__ import annotations

from typing import Protocol

from emu.displaced.plans import Plan


class NamedRegisters(Protocol):
    """Registers that can be read by name."""

    def register(self, name: str) -> int:
        """Return a register by name. Raises KeyError for one that is not available."""
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

        It is 0 on the ISAs where FreeBSD does not implement it.
        """
        ...

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        ...

    def stack_word(self, index: int) -> int:
        """Return the word at sp + `index` words.  Raises `emu.support.words.BadAddressError`."""
        ...

    def stack_words(self, first: int) -> tuple[int, int, int, int, int]:
        """Return five words of the stack from sp + `first` words on, 0 beyond its end."""
        ...

    def go_to(self, address: int, stub_adds: int = 0) -> None:
        """Make the interrupted code continue at an address.

        `stub_adds` is the number that the kernel's stub, if there is one, will add to the address.
        """
        ...

    def execute(self, plan: Plan, address: int, stub_adds: int = 0, scratch: int = 0) -> bool:
        """Carry out a plan instead of the instruction at an address.

        Returns True, except for a push if the trap frame of this context occupies its place: then
        the word is left in scratch space for the stub.  Raises
        `emu.support.words.BadAddressError`.
        """
        ...
