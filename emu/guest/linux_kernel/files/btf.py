"""BTF, the type information that a kernel carries: reading it, type by type.

    header | types | strings

A type is three words: the offset of its name in the strings; its kind, a flag, and the number of
its members; its size or another type's number.  The data after these words depend on the kind.
Types are numbered from 1 on; 0 is void.

Source: Linux Documentation/bpf/btf.rst, include/uapi/linux/btf.h.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from emu.support import disk_cache

_MAGIC: Final = 0xEB9F
_HEADER: Final = struct.Struct("<HBBIIIII")
_TYPE: Final = struct.Struct("<III")
# The greatest depth of arrays of arrays and structs in structs: deeper types are circular.
_DEEPEST: Final = 64
_CACHE_VERSION: Final = b"1"


class BtfError(Exception):
    """Type information that cannot be read."""


class Kind(IntEnum):
    """Kinds of types (BTF_KIND_*)."""

    VOID = 0
    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FWD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    VAR = 14
    DATASEC = 15
    FLOAT = 16
    DECL_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


# The size in bytes of the data after the three words, and the additional size for each member.
_FOLLOWS: Final = {
    Kind.INT: (4, 0),
    Kind.ARRAY: (12, 0),
    Kind.STRUCT: (0, 12),
    Kind.UNION: (0, 12),
    Kind.ENUM: (0, 8),
    Kind.FUNC_PROTO: (0, 8),
    Kind.VAR: (4, 0),
    Kind.DATASEC: (0, 12),
    Kind.DECL_TAG: (4, 0),
    Kind.ENUM64: (0, 12),
}
# Kinds that only qualify another type.
_QUALIFIERS: Final = frozenset({Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.TYPE_TAG})
_TRANSPARENT: Final = _QUALIFIERS | {Kind.TYPEDEF}


class Entry(NamedTuple):
    """A type."""

    number: int
    name: str
    kind: Kind
    flag: bool
    vlen: int
    size: int
    """Its size in bytes, or the number of the type that it refers to."""
    at: int
    """The offset of the data after the three words."""


_NOTHING: Final = Entry(0, "void", Kind.VOID, flag=False, vlen=0, size=0, at=0)


class Member(NamedTuple):
    """A member of a struct or union."""

    name: str
    type: int
    offset: int
    """Bits from the start."""
    bits: int
    """Width of a bit-field; 0 for others."""


class Btf:
    """The types of a kernel, or of a module of it; `identity` identifies the data in caches.

    The numbers of a module's types, and the offsets of its strings, follow those of the kernel
    (`base`), which it refers to.
    """

    def __init__(self, data: bytes, identity: str = "", base: Btf | None = None) -> None:
        """Read the header.  Raises `BtfError` if the data are not BTF."""
        self._base = base
        self._first = 0 if base is None else len(base)
        """The number of types of the base."""
        self._first_string = 0 if base is None else base.strings_size
        try:
            magic, version, _flags, header, types, types_size, strings, strings_size = _HEADER.unpack_from(data)
        except struct.error:
            raise BtfError("no BTF header") from None
        if magic != _MAGIC or version != 1:
            raise BtfError(f"unknown BTF: magic {magic:#x}, version {version}")
        self._data = data
        self._types = header + types
        self._types_end = self._types + types_size
        self._strings = header + strings
        self._strings_end = self._strings + strings_size
        if max(self._types_end, self._strings_end) > len(data):
            raise BtfError("truncated BTF")
        made = disk_cache.cached("btf", _CACHE_VERSION + identity.encode(), self._scan) if identity else self._scan()
        half = len(made) // 2
        self._offsets = array("I", made[:half])
        """The start of each type; that of type 1 first."""
        self._name_offsets = array("I", made[half:])

    def _scan(self) -> bytes:
        offsets, names = array("I"), array("I")
        at, unpack = self._types, _TYPE.unpack_from
        follows = [_FOLLOWS.get(Kind(kind), (0, 0)) if kind < len(Kind) else None for kind in range(32)]
        while at < self._types_end:
            try:
                name, info, _ = unpack(self._data, at)
            except struct.error:
                raise BtfError("truncated BTF") from None
            more = follows[info >> 24 & 0x1F]
            if more is None:
                raise BtfError(f"BTF kind {info >> 24 & 0x1F}")
            offsets.append(at)
            names.append(name)
            at += 12 + more[0] + more[1] * (info & 0xFFFF)
        if at > self._types_end:
            raise BtfError("truncated BTF: its last type is incomplete")
        return offsets.tobytes() + names.tobytes()

    def __len__(self) -> int:
        return self._first + len(self._offsets)

    @property
    def strings_size(self) -> int:
        """Bytes of the strings, with those of the base."""
        return self._first_string + self._strings_end - self._strings

    def string(self, offset: int) -> str:
        """Return a string of the table.  Raises `BtfError`."""
        if self._base is not None and offset < self._first_string:
            return self._base.string(offset)
        start = self._strings + offset - self._first_string
        end = self._data.find(b"\0", start, self._strings_end)
        if not self._strings <= start < self._strings_end or end < 0:
            raise BtfError("a name outside its table")
        return self._data[start:end].decode("utf-8", "replace")

    def entry(self, number: int) -> Entry:
        """Return a type.  Raises `BtfError` for an unknown number."""
        if number == 0:
            return _NOTHING
        if self._base is not None and number <= self._first:
            return self._base.entry(number)
        if not 0 < number <= len(self):
            raise BtfError(f"there is no type {number}")
        at = self._offsets[number - 1 - self._first]
        name, info, size = _TYPE.unpack_from(self._data, at)
        return Entry(number, self.string(name), Kind(info >> 24 & 0x1F), bool(info >> 31), info & 0xFFFF, size, at + 12)

    def words(self, entry: Entry, count: int) -> tuple[int, ...]:
        """Return 32-bit words of the data after a type."""
        if self._base is not None and entry.number <= self._first:
            return self._base.words(entry, count)
        return struct.unpack_from(f"<{count}I", self._data, entry.at)

    def find(self, name: str, *kinds: Kind) -> Entry | None:
        """Return the first type of a name and of one of these kinds, None if there is none.

        The types of a module precede those of its kernel.
        """
        return self._find(name, kinds) or (None if self._base is None else self._base.find(name, *kinds))

    def _find(self, name: str, kinds: tuple[Kind, ...]) -> Entry | None:
        # A module uses the kernel's string for a name that the kernel has.
        shared = None if self._base is None else self._base.offset_of(name)
        found = None if shared is None else self._named(shared, kinds)
        if found is not None:
            return found
        offset = self.offset_of(name)
        return None if offset is None else self._named(offset, kinds)

    def offset_of(self, name: str) -> int | None:
        """Return the offset of a string of its own."""
        found = self._data.find(b"\0" + name.encode() + b"\0", self._strings, self._strings_end)
        return None if found < 0 or not name else found + 1 - self._strings + self._first_string

    def _named(self, offset: int, kinds: tuple[Kind, ...]) -> Entry | None:
        number = -1
        while True:
            try:
                number = self._name_offsets.index(offset, number + 1)
            except ValueError:
                return None
            entry = self.entry(self._first + number + 1)
            if entry.kind in kinds:
                return entry

    def members(self, entry: Entry) -> Iterator[Member]:
        """Yield the members of a struct or union."""
        words = self.words(entry, 3 * entry.vlen)
        for name, type_, offset in zip(words[::3], words[1::3], words[2::3], strict=True):
            bits = offset >> 24 if entry.flag else 0
            yield Member(self.string(name), type_, offset & 0xFF_FFFF if entry.flag else offset, bits)

    def resolved(self, number: int, *, typedefs: bool = True) -> Entry:
        """Return a type without qualifiers, and without typedefs unless they are requested.

        Raises `BtfError` if it refers to itself.
        """
        through = _TRANSPARENT if typedefs else _QUALIFIERS
        entry = self.entry(number)
        for _ in range(32):
            if entry.kind not in through:
                return entry
            entry = self.entry(entry.size)
        raise BtfError(f"type {number} refers to itself")

    # -- structures

    def size_of(self, number: int, depth: int = 0) -> int:
        """Return a type's size in bytes; `depth` counts arrays in arrays.  Raises `BtfError`."""
        if depth > _DEEPEST:
            raise BtfError(f"type {number} refers to itself")
        entry = self.resolved(number)
        if entry.kind is Kind.PTR:
            return 8
        if entry.kind is Kind.ARRAY:
            element, _, count = self.words(entry, 3)
            return count * self.size_of(element, depth + 1)
        return entry.size

    def struct_size(self, name: str) -> int:
        """Return a struct's size in bytes.  Raises `BtfError`."""
        return self._struct(name).size

    def offset(self, struct_name: str, path: str) -> int:
        """Return a member's offset in bytes; `path` may contain dots.  Raises `BtfError`."""
        entry, bits = self._struct(struct_name), 0
        for name in path.split("."):
            found = self._member(entry, name)
            if found is None:
                raise BtfError(f"struct {struct_name} has no member {path}")
            bits += found.offset
            entry = self.resolved(found.type)
        return bits // 8

    def _struct(self, name: str) -> Entry:
        entry = self.find(name, Kind.STRUCT)
        if entry is None:
            raise BtfError(f"there is no struct {name}")
        return entry

    def _member(self, entry: Entry, name: str, depth: int = 0) -> Member | None:
        """Find a member, also in members without a name; `depth` counts these."""
        if depth > _DEEPEST:
            raise BtfError(f"struct {entry.name} contains itself")
        if entry.kind not in {Kind.STRUCT, Kind.UNION}:
            return None
        for member in self.members(entry):
            if member.name == name:
                return member
            if not member.name:
                inner = self._member(self.resolved(member.type), name, depth + 1)
                if inner is not None:
                    return inner._replace(offset=member.offset + inner.offset)
        return None
