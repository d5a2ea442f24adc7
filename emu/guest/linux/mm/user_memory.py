"""The memory of the process that makes a system call, as files of every kind reach it."""

from __future__ import annotations

from typing import Protocol


class UserMemory(Protocol):
    """Memory of the calling process.  Each method raises `BadAddressError`."""

    def read(self, address: int, size: int) -> bytes:
        """Read bytes."""

    def write(self, address: int, data: bytes) -> None:
        """Write bytes."""

    def number(self, address: int, size: int = 8, *, signed: bool = False) -> int:
        """Read a number of `size` bytes."""
