"""System calls as their provider sees them.

Their names, types, and the hooks at their entries and returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol


class Moment(Enum):
    """When in a system call a probe fires."""

    ENTRY = "entry"
    RETURN = "return"


class CallSignature(NamedTuple):
    """The types of a system call, as C writes them."""

    result: str
    parameters: tuple[str, ...]


class SystemCallTable(Protocol):
    """The system calls of one ABI of a guest.

    While it is enabled a call that is armed fires its probes, with the arguments sign- or
    zero-extended to 64 bits at entry, and with -1 or the result, as an int, twice at return.
    """

    @property
    def module(self) -> str:
        """What FreeBSD calls the ABI: freebsd, linux."""
        ...

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
        """Open or close the gate that every call passes."""
        ...

    def argument(self, index: int) -> int:
        """Return an argument, from the sixth on, of the call that a probe of entry fires for.

        0 if there is none.
        """
        ...
