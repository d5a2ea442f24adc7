"""An instruction that may get a probe."""

from __future__ import annotations

from typing import NamedTuple


class CheckSite(NamedTuple):
    """One instruction of a program."""

    address: int
    code: bytes
    """Its bytes and some of those after it: as many as the longest instruction has."""
    function: str = ""
    """The function it is in; "": unknown."""
    start: int = 0
    """The start of that function; 0: unknown."""
    probe: str = ""
    """"entry" or "return", if it is one of these."""

    def moved(self, bias: int) -> CheckSite:
        """Return the same instruction in a program that is loaded `bias` bytes above its file's."""
        return self._replace(address=self.address + bias, start=self.start and self.start + bias)

    @property
    def name(self) -> str:
        """Its name for users: function+offset, or its address."""
        return f"{self.function}+{self.address - self.start:#x}" if self.function else f"{self.address:#x}"
