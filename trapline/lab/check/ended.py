"""The result of a whole run of a guest."""

from __future__ import annotations

from typing import NamedTuple


class Ended(NamedTuple):
    """The result of a run."""

    output: bytes
    status: str
    instructions: int
    memory: int
    """A checksum."""
