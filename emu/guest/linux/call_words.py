"""The arguments of a system call in words that machine code reads, while its entry probe fires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from emu.support.plain import address_of, words

# As many as D has variables for arguments.
COUNT: Final = 10


class CallWords:
    """The arguments of the call; all are 0 while no entry probe fires."""

    def __init__(self) -> None:
        self._words = words(COUNT)
        self.address = address_of(self._words)
        """The address of the words."""

    def set(self, arguments: Sequence[int]) -> None:
        """Store arguments; missing ones are 0."""
        for place in range(COUNT):
            self._words[place] = arguments[place] if place < len(arguments) else 0

    def get(self, index: int) -> int:
        """Return an argument."""
        return self._words[index] if index < COUNT else 0
