"""The extended attributes of an inode, as a tmpfs keeps them.

Source: Linux fs/xattr.c (simple_xattr_*).
"""

from __future__ import annotations

from typing import Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EEXIST, ENODATA, LinuxError
from emu.guest.linux.fs.page_cache import FileMemory

CREATE, REPLACE = 1, 2
# Bytes that an attribute takes besides its name and its value.
_COST: Final = 64


class ExtendedAttributes:
    """Values by name, which count as memory that files hold."""

    def __init__(self, memory: FileMemory) -> None:
        self._memory = memory
        self._values: dict[str, bytes] = {}
        self._bytes = 0

    def __del__(self) -> None:
        self._memory.give_back(_pages(self._bytes))

    def get(self, name: str) -> bytes:
        """Return a value.  Raises `LinuxError` ENODATA."""
        if name not in self._values:
            raise LinuxError(ENODATA)
        return self._values[name]

    def set(self, name: str, value: bytes, flags: int) -> None:
        """Set a value; `flags` may ask for a new name, or for one that there is.

        Raises `LinuxError`: EEXIST, ENODATA, ENOSPC.
        """
        known = self._values.get(name)
        if known is not None and flags & CREATE:
            raise LinuxError(EEXIST)
        if known is None and flags & REPLACE:
            raise LinuxError(ENODATA)
        self._count(_size(name, value) - (_size(name, known) if known is not None else 0))
        self._values[name] = value

    def remove(self, name: str) -> None:
        """Take an attribute out.  Raises `LinuxError` ENODATA."""
        value = self.get(name)
        del self._values[name]
        self._count(-_size(name, value))

    def names(self) -> list[str]:
        """Return all names, the last of the alphabet first, as Linux lists them."""
        return sorted(self._values, key=lambda name: name.encode("utf-8", "surrogateescape"), reverse=True)

    def _count(self, more: int) -> None:
        change = _pages(self._bytes + more) - _pages(self._bytes)
        if change > 0:
            self._memory.take(change)
        else:
            self._memory.give_back(-change)
        self._bytes += more


def _size(name: str, value: bytes) -> int:
    return len(name) + len(value) + _COST


def _pages(size: int) -> int:
    return -(-size // PAGE)
