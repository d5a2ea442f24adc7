"""C types from CTF, as D's types: `.SUNW_ctf` (versions 2 and 3) and the GNU linker's `.ctf`.

The three say the same in fields of different widths; `_Dialect` has the widths.  A GNU archive of
several dictionaries is read for its first, the one that all share.

Source: FreeBSD sys/sys/ctf.h; binutils include/ctf.h; illumos ctf(5).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from emu.elf import Image
from trapline.d.data_models import base_type
from trapline.d.type_rules import align_of
from trapline.d.types import (
    VOID,
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Integer,
    Kind,
    Member,
    Pointer,
    Type,
    Typedef,
)

_Read = TypeVar("_Read")

# Flags: zlib; GNU's: names and symbols are the dynamic ones.
_COMPRESSED, _DYNAMIC = 1, 8
_SIGNED, _CHARACTER = 1, 2
_INTEGER, _FLOAT, _POINTER, _ARRAY, _FUNCTION, _STRUCT, _UNION, _ENUM, _FORWARD, _TYPEDEF = range(1, 11)
_SLICE: Final = 14
_KEYWORDS: Final = {_STRUCT: "struct", _UNION: "union", _ENUM: "enum"}
# Bit of a name that is in the ELF file's string table rather than in CTF's.
_EXTERNAL: Final = 0x8000_0000
_ARCHIVE: Final = 0x8B47F2A4D7623EEB
_SKIPPED: Final = frozenset({"_START_", "_END_"})


class CtfError(Exception):
    """Type information that cannot be read."""


class _Dialect(NamedTuple):
    """One format of CTF."""

    header: str
    """Fields after magic, version and flags, as `struct` has them."""
    sections: tuple[int, int, int, int]
    """Which of those fields are the offsets of objects, functions, types and strings."""
    stype: str
    """name, info, size or type."""
    kind_shift: int
    vlen_mask: int
    long_size: int
    """Size that says: the size follows in two words."""
    array: str
    argument: str
    member: str
    """In the order name, type, offset; `offset_first` if the offset comes second."""
    long_member: str
    long_from: int
    """Structs of so many bytes have long members."""
    offset_first: bool = False
    flat_functions: bool = False
    """Functions of symbols are type numbers, like objects."""


_VERSION_2: Final = _Dialect("<8I", (3, 4, 5, 6), "<IHH", 11, 0x3FF, 0xFFFF, "<HHI", "<H", "<IHH", "<IHHII", 8192)
_VERSION_3: Final = _Dialect(
    "<8I", (3, 4, 5, 6), "<III", 26, 0xFFFFFF, 0xFFFF_FFFF, "<III", "<I", "<III", "<IIII", 536_870_912
)
_GNU: Final = _Dialect(
    "<12I", (4, 5, 9, 10), "<III", 26, 0xFFFFFF, 0xFFFF_FFFF, "<III", "<I", "<III", "<IIII", 536_870_912,
    offset_first=True, flat_functions=True,
)  # fmt: skip
# By magic number and version.
_DIALECTS: Final = {(0xCFF1, 2): _VERSION_2, (0xCFF1, 3): _VERSION_3, (0xDFF2, 4): _GNU}
_SECTIONS: Final = (".SUNW_ctf", ".ctf")


class _Entry(NamedTuple):
    """A type as it is written."""

    name: str
    kind: int
    vlen: int
    size: int
    """Or the type it refers to."""
    at: int
    """Where what follows it begins."""


class CtfTypes:
    """The types of an image, from CTF; without it there are none."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._made: dict[int, Type] = {}
        self._flags = 0

    # -- questions

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        return self._answer("typedef", name, self._type)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return the struct, union or enum (`keyword`) of a tag."""
        found = self._answer(keyword, tag, self._type)
        return found if isinstance(found, Composite | Enumeration) else None

    def variable(self, name: str) -> Type | None:
        """Return the type of a variable."""
        number = self._safely(lambda: self._objects.get(name))
        return self._safely(lambda: self._type(number)) if number else None

    def function(self, name: str) -> Function | None:
        """Return the type of a function."""
        return self._safely(lambda: self._functions.get(name))

    def _answer(self, kind: str, name: str, read: Callable[[int], Type]) -> Type | None:
        number = self._safely(lambda: self._index.get((kind, name)))
        return self._safely(lambda: read(number)) if number else None

    @staticmethod
    def _safely(read: Callable[[], _Read]) -> _Read | None:
        try:
            return read()
        except (CtfError, struct.error, RecursionError, zlib.error):
            return None

    # -- the section

    @cached_property
    def _section(self) -> tuple[_Dialect, tuple[int, ...], bytes] | None:
        """Return dialect, header and body."""
        found = next((section for name in _SECTIONS if (section := self._image.section(name)) is not None), None)
        if found is None:
            return None
        data = _first_dictionary(found.data)
        if len(data) < 4:
            raise CtfError("no header")
        magic, version, flags = struct.unpack_from("<HBB", data)
        self._flags = flags
        dialect = _DIALECTS.get((magic, version))
        if dialect is None:
            raise CtfError(f"magic {magic:#x}, version {version}")
        header = struct.unpack_from(dialect.header, data, 4)
        body = data[4 + struct.calcsize(dialect.header) :]
        return dialect, header, zlib.decompress(body) if flags & _COMPRESSED else body

    @property
    def _dynamic(self) -> bool:
        return self._parts[0] is _GNU and bool(self._flags & _DYNAMIC)

    @property
    def _parts(self) -> tuple[_Dialect, tuple[int, ...], bytes]:
        if self._section is None:
            raise CtfError("no type information")
        return self._section

    def _offset(self, which: int) -> int:
        dialect, header, _body = self._parts
        return header[dialect.sections[which]]

    def _name(self, reference: int) -> str:
        _dialect, _header, body = self._parts
        data, start = body, self._offset(3) + reference
        if reference & _EXTERNAL:
            table = self._image.section(".dynstr" if self._dynamic else ".strtab")
            data, start = table.data if table is not None else b"", reference & ~_EXTERNAL
        end = data.find(b"\0", start)
        if not 0 <= start <= end:
            raise CtfError("a name outside its table")
        return data[start:end].decode("utf-8", "replace")

    # -- types

    @cached_property
    def _entries(self) -> list[_Entry]:
        """All types; the number of the first is 1."""
        dialect, _header, body = self._parts
        at, end = self._offset(2), min(self._offset(3), len(body))
        found = []
        width = struct.calcsize(dialect.stype)
        while at + width <= end:
            name, info, size = struct.unpack_from(dialect.stype, body, at)
            at += width
            kind, vlen = info >> dialect.kind_shift, info & dialect.vlen_mask
            if size == dialect.long_size:
                high, low = struct.unpack_from("<II", body, at)
                size, at = high << 32 | low, at + 8
            found.append(_Entry(self._name(name), kind, vlen, size, at))
            at += self._extra(kind, vlen, size)
        return found

    def _extra(self, kind: int, vlen: int, size: int) -> int:
        """Return the bytes that follow a type."""
        dialect = self._parts[0]
        match kind:
            case 1 | 2:
                return 4
            case 4:
                return struct.calcsize(dialect.array)
            case 5:
                return struct.calcsize(dialect.argument) * (vlen + (vlen & 1))
            case 6 | 7:
                return vlen * struct.calcsize(dialect.long_member if size >= dialect.long_from else dialect.member)
            case 8:
                return 8 * vlen
            case 14:
                return 8
        return 0

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for number, entry in enumerate(self._entries, 1):
            kind = "typedef" if entry.kind == _TYPEDEF else _KEYWORDS.get(entry.kind)
            if kind is not None and entry.name:
                found.setdefault((kind, entry.name), number)
        return found

    def _type(self, number: int) -> Type:
        if number == 0:
            return VOID
        if number not in self._made:
            if not 0 < number <= len(self._entries):
                raise CtfError(f"no type {number}")
            self._make(number, self._entries[number - 1])
        return self._made[number]

    def _make(self, number: int, entry: _Entry) -> None:
        """Make a type; keep it before those it refers to are made, if they may refer to it."""
        match entry.kind:
            case 6 | 7:
                made = self._made[number] = Composite(Kind[_KEYWORDS[entry.kind].upper()], entry.name)
                made.members = tuple(self._members(entry))
                made.size = entry.size
                made.alignment = max((align_of(member.type) for member in made.members), default=1)
            case 8:
                enumeration = self._made[number] = Enumeration(entry.name)
                enumeration.enumerators = dict(self._enumerators(entry))
            case 9:
                self._made[number] = self._forward(entry)
            case _:
                self._made[number] = self._simple(entry)

    def _forward(self, entry: _Entry) -> Type:
        """Return what a forward declaration stands for; the size of GNU's is its kind."""
        keyword = _KEYWORDS.get(entry.size, "struct")
        defined = self._index.get((keyword, entry.name))
        if defined is not None:
            return self._type(defined)
        return Enumeration(entry.name) if keyword == "enum" else Composite(Kind[keyword.upper()], entry.name)

    def _simple(self, entry: _Entry) -> Type:
        dialect, _header, body = self._parts
        match entry.kind:
            case 1 | 2:
                (data,) = struct.unpack_from("<I", body, entry.at)
                return _number(entry, data)
            case 3:
                return Pointer(self._type(entry.size), size=self._image.isa.word)
            case 4:
                contents, _index, count = struct.unpack_from(dialect.array, body, entry.at)
                return Array(self._type(contents), count)
            case 5:
                return self._signature(entry.size, entry.vlen, entry.at)
            case 10:
                return Typedef(entry.name, self._type(entry.size))
            case 14:
                return self._type(struct.unpack_from("<I", body, entry.at)[0])
        return self._type(entry.size)  # volatile, const, restrict

    def _signature(self, returns: int, count: int, at: int) -> Function:
        dialect, _header, body = self._parts
        width = struct.calcsize(dialect.argument)
        numbers = [struct.unpack_from(dialect.argument, body, at + width * place)[0] for place in range(count)]
        varargs = bool(numbers) and numbers[-1] == 0
        parameters = tuple(map(self._type, numbers[:-1] if varargs else numbers))
        return Function(self._type(returns), parameters, varargs)

    def _members(self, entry: _Entry) -> Iterator[Member]:
        dialect, _header, body = self._parts
        is_long = entry.size >= dialect.long_from
        form = dialect.long_member if is_long else dialect.member
        for place in range(entry.vlen):
            fields = struct.unpack_from(form, body, entry.at + place * struct.calcsize(form))
            if is_long and dialect.offset_first:
                name, high, number, low = fields
                offset = high << 32 | low
            elif is_long:
                name, number, *_pad, high, low = fields
                offset = high << 32 | low
            elif dialect.offset_first:
                name, offset, number = fields
            else:
                name, number, offset = fields
            yield self._member(self._name(name), number, offset)

    def _member(self, name: str, number: int, offset: int) -> Member:
        """Return a member.

        An integer of fewer bits than its bytes is a bit-field, and so is GNU's slice.
        """
        body = self._parts[2]
        entry = self._entries[number - 1] if 0 < number <= len(self._entries) else None
        if entry is not None and entry.kind == _SLICE:
            base, shift, bits = struct.unpack_from("<IHH", body, entry.at)
            return Member(name, self._type(base), offset + shift, bits)
        if entry is not None and entry.kind == _INTEGER:
            (data,) = struct.unpack_from("<I", body, entry.at)
            bits = data & 0xFFFF
            if bits and bits != 8 * entry.size:
                return Member(name, self._type(number), offset, bits)
        return Member(name, self._type(number), offset)

    def _enumerators(self, entry: _Entry) -> Iterator[tuple[str, int]]:
        body = self._parts[2]
        for place in range(entry.vlen):
            name, value = struct.unpack_from("<Ii", body, entry.at + 8 * place)
            yield self._name(name), value

    # -- symbols

    @cached_property
    def _symbol_table(self) -> list[tuple[str, str]]:
        """Return name and type of the symbols of the tables of objects and functions, in order."""
        table = self._image.elf.get_section_by_name(".dynsym" if self._dynamic else ".symtab")
        return [
            (symbol.name, symbol["st_info"]["type"])
            for symbol in (table.iter_symbols() if table is not None else ())
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name not in _SKIPPED
        ]

    def _symbols(self, kind: str) -> list[str]:
        return [name for name, type_ in self._symbol_table if type_ == kind]

    @cached_property
    def _objects(self) -> Mapping[str, int]:
        """Type numbers of variables by name; of GNU's those of the section of variables too."""
        dialect, header, body = self._parts
        end = self._offset(1)
        if not dialect.flat_functions:
            return dict(zip(self._symbols("STT_OBJECT"), self._numbers(self._offset(0), end), strict=False))
        found = dict(
            zip(self._indexed(header[6], header[7], "STT_OBJECT"), self._numbers(header[4], end), strict=False)
        )
        for at in range(header[8], header[9] - 7, 8):
            name, number = struct.unpack_from("<II", body, at)
            found[self._name(name)] = number
        return found

    def _numbers(self, start: int, end: int) -> list[int]:
        """Return a table of type numbers."""
        dialect, _header, body = self._parts
        width = struct.calcsize(dialect.argument)
        return [struct.unpack_from(dialect.argument, body, at)[0] for at in range(start, end - width + 1, width)]

    def _indexed(self, start: int, end: int, kind: str) -> list[str]:
        """Return the names for one of GNU's tables: its index, or all symbols of a kind."""
        if start >= end:
            return self._symbols(kind)
        return [self._name(reference) for reference in self._numbers(start, end)]

    @cached_property
    def _functions(self) -> Mapping[str, Function]:
        dialect, header, body = self._parts
        if dialect.flat_functions:
            names = self._indexed(header[7], header[8], "STT_FUNC")
            pairs = zip(names, self._numbers(header[5], header[6]), strict=False)
            return {name: type_ for name, number in pairs if isinstance(type_ := self._type(number), Function)}
        width = struct.calcsize(dialect.argument)
        at, end = self._offset(1), self._offset(2)
        found: dict[str, Function] = {}
        for name in self._symbols("STT_FUNC"):
            if at + width > end:
                break
            (info,) = struct.unpack_from(dialect.argument, body, at)
            at += width
            if not info:
                continue  # nothing is known of it
            count = info & dialect.vlen_mask
            (returns,) = struct.unpack_from(dialect.argument, body, at)
            found[name] = self._signature(returns, count, at + width)
            at += width * (1 + count)
        return found


def _first_dictionary(data: bytes) -> bytes:
    """Return the shared dictionary of a GNU archive; what is not an archive is one dictionary."""
    if len(data) < 40 or int.from_bytes(data[:8], "little") != _ARCHIVE:
        return data
    _magic, _model, _count, _names, contents = struct.unpack_from("<5Q", data)
    size = int.from_bytes(data[contents : contents + 8], "little")
    return data[contents + 8 : contents + 8 + size]


def _number(entry: _Entry, data: int) -> Type:
    """Return an integer or float: D's own where it is the same."""
    known = base_type(entry.name.split())
    if entry.kind == _FLOAT:
        return known if isinstance(known, Float) else Float(entry.name, entry.size)
    encoding, signed = data >> 24, bool(data >> 24 & _SIGNED)
    size = entry.size
    if isinstance(known, Integer) and (known.size, known.signed) == (size, signed):
        return known
    return Integer(known.name if isinstance(known, Integer) else entry.name, size, signed, bool(encoding & _CHARACTER))
