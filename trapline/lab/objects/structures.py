"""Structures of the code under test, laid out as its DWARF says."""

from __future__ import annotations

from typing import Final, Protocol

from emu.support.did_you_mean import did_you_mean
from trapline.d.types.rules import size_of
from trapline.d.types.types import Array, Composite, Integer, Member, resolve

# Where a user finds what a glue reads and writes.
_NEEDS: Final = "; docs/objects.md lists what each glue needs"


class LayoutError(Exception):
    """The debugging information lacks a structure or a member; the message has one line."""


class Memory(Protocol):
    """The memory that contains the structures."""

    name: str

    def load(self, address: int, size: int) -> bytes:
        """Return bytes at an address."""
        ...

    def store(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        ...


class View:
    """One structure in memory; `view["member"]` and `view["array", 3]` read and write it."""

    def __init__(self, code: Memory, layout: Composite, address: int) -> None:
        self._code = code
        self._layout = layout
        self.address = address
        self._fields: dict[str | tuple[str, int], tuple[int, int, bool]] = {}

    @property
    def size(self) -> int:
        """The size of the structure in bytes."""
        return size_of(self._layout)

    def has(self, name: str) -> bool:
        """Return whether there is a member of this name."""
        return self._layout.member(name) is not None

    def view(self, name: str) -> View:
        """Return a member that is a structure.  Raises `LayoutError`."""
        offset, _, _ = self.field(name)
        member = self._layout.member(name)
        kind = resolve(member.type) if member is not None else None
        if not isinstance(kind, Composite):
            raise LayoutError(f"{self._code.name}: '{name}' of {self._layout} is not a structure")
        return View(self._code, kind, self.address + offset)

    def place(self, name: str) -> int:
        """Return the address of a member.  Raises `LayoutError`."""
        return self.address + self.field(name)[0]

    def __getitem__(self, key: str | tuple[str, int]) -> int:
        offset, size, signed = self.field(key)
        return int.from_bytes(self._code.load(self.address + offset, size), "little", signed=signed)

    def __setitem__(self, key: str | tuple[str, int], value: int) -> None:
        offset, size, _ = self.field(key)
        self._code.store(self.address + offset, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def field(self, key: str | tuple[str, int]) -> tuple[int, int, bool]:
        """Return (offset, size, signed) of a member, or of an element of it.  Raises `LayoutError`."""
        if key not in self._fields:
            self._fields[key] = self._find(key)
        return self._fields[key]

    def _find(self, key: str | tuple[str, int]) -> tuple[int, int, bool]:
        name, index = key if isinstance(key, tuple) else (key, 0)
        member: Member | None = self._layout.member(name)
        if member is None:
            hint = did_you_mean(name, (one.name for one in self._layout.members or ()), _NEEDS)
            raise LayoutError(f"{self._code.name}: {self._layout} has no member '{name}'{hint}")
        kind = resolve(member.type)
        if isinstance(kind, Array):
            kind = resolve(kind.element)
        size = size_of(kind)
        return member.byte_offset + index * size, size, isinstance(kind, Integer) and kind.signed
