"""The result of a whole run of a guest."""

from __future__ import annotations

from typing import Final, NamedTuple

_SLOWER: Final = 50
_MORE: Final = 10_000_000


class Ended(NamedTuple):
    """The result of a run."""

    output: bytes
    status: str
    instructions: int
    memory: int
    """A checksum."""
    time: int = 0
    """The virtual time that it took, in nanoseconds; 0: no clock ran."""

    @property
    def enough(self) -> int:
        """The virtual time after which a run that should be the same is stopped, in nanoseconds.

        Probes on the guest's own trap path cost time, too.
        """
        return _SLOWER * self.time + _MORE
