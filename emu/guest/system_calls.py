"""System calls, for the syscall provider.

This is the interface to their names and types, and to the hooks at their entries and returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from emu.native.guest import LateArguments


class Moment(Enum):
    """The moment in a system call at which a probe fires."""

    ENTRY = "entry"
    RETURN = "return"


class CallSignature(NamedTuple):
    """The types of a system call, in the syntax of C."""

    result: str
    parameters: tuple[str, ...]


class SystemCallTable(Protocol):
    """The system calls of one ABI of a guest.

    While it is enabled, an armed call fires its probes, with the arguments sign- or zero-extended
    to 64 bits at entry, and with -1 or the result, as an int, twice at return.
    """

    @property
    def module(self) -> str:
        """FreeBSD's name of the ABI: freebsd, linux."""
        ...

    late: LateArguments
    """Where machine code finds what `argument` returns."""

    @property
    def names(self) -> Mapping[int, str]:
        """The calls by number."""
        ...

    def signature(self, number: int) -> CallSignature | None:
        """Return the types of a call, None if they are not known."""
        ...

    def arm(self, number: int, moment: Moment, probe_id: int) -> None:
        """Give a call the id of a probe, 0 for none."""
        ...

    def enable(self, *, on: bool) -> None:
        """Enable or disable the test in the path of every call."""
        ...

    def argument(self, index: int) -> int:
        """Return an argument, from the sixth on, of the call whose entry probe fires.

        Returns 0 if there is none.
        """
        ...
