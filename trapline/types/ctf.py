"""C types from CTF, as D's types.

`trapline.types.ctf_section` reads the section; here types are made from it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeVar

from emu.elf.image import Image
from trapline.d.types.data_models import base_type
from trapline.d.types.rules import align_of
from trapline.d.types.types import (
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
from trapline.types.ctf_section import ENUM, FLOAT, INTEGER, SLICE, STRUCT, TYPEDEF, UNION, CtfError, CtfSection, Entry

_Read = TypeVar("_Read")

# Encodings of integers (CTF_INT_*).
_SIGNED, _CHARACTER = 1, 2
_KEYWORDS: Final = {STRUCT: "struct", UNION: "union", ENUM: "enum"}
_SKIPPED: Final = frozenset({"_START_", "_END_"})


class CtfTypes:
    """The types of an image, from CTF; without it there are none.

    A module's CTF may refer to types of its `parent`, the kernel; without that nothing is known of
    them.
    """

    def __init__(self, image: Image, parent: CtfTypes | None = None) -> None:
        self._image = image
        self._parent = parent
        self._made: dict[int, Type] = {}

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
        # A D program asks for each name of its own: most of them are in no table, which is then not read.
        number = self._safely(lambda: self._index.get((kind, name)) if self._section.mentions(name) else None)
        return self._safely(lambda: read(number)) if number else None

    @staticmethod
    def _safely(read: Callable[[], _Read]) -> _Read | None:
        try:
            return read()
        except (CtfError, struct.error, RecursionError, zlib.error):
            return None

    # -- types

    @cached_property
    def _readable(self) -> CtfSection | None:
        return self._safely(lambda: CtfSection(self._image))

    @property
    def _section(self) -> CtfSection:
        if self._readable is None:
            raise CtfError("no type information")
        return self._readable

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for number, entry in enumerate(self._section.entries, 1):
            kind = "typedef" if entry.kind == TYPEDEF else _KEYWORDS.get(entry.kind)
            if kind is not None and entry.name:
                found.setdefault((kind, entry.name), number | self._section.child)
        return found

    def _type(self, number: int) -> Type:
        if number == 0:
            return VOID
        if self._section.child and not number & self._section.child:
            if self._parent is None:
                raise CtfError("a type of a parent that is not known")
            return self._parent._type(number)  # noqa: SLF001  another one of this class
        number &= ~self._section.child
        if number not in self._made:
            self._make(number, self._section.entry(number))
        return self._made[number]

    def _make(self, number: int, entry: Entry) -> None:
        """Make a type; store it before the types that it refers to, if they may refer to it."""
        match entry.kind:
            case 6 | 7:
                made = self._made[number] = Composite(Kind[_KEYWORDS[entry.kind].upper()], entry.name)
                made.members = tuple(self._member(*fields) for fields in self._section.members(entry))
                made.size = entry.size
                made.alignment = max((align_of(member.type) for member in made.members), default=1)
            case 8:
                enumeration = self._made[number] = Enumeration(entry.name)
                enumeration.enumerators = dict(self._section.enumerators(entry))
            case 9:
                self._made[number] = self._forward(entry)
            case _:
                self._made[number] = self._simple(entry)

    def _forward(self, entry: Entry) -> Type:
        """Return the type of a forward declaration; the size of GNU's is its kind."""
        keyword = _KEYWORDS.get(entry.size, "struct")
        defined = self._index.get((keyword, entry.name))
        if defined is not None:
            return self._type(defined)
        return Enumeration(entry.name) if keyword == "enum" else Composite(Kind[keyword.upper()], entry.name)

    def _simple(self, entry: Entry) -> Type:
        match entry.kind:
            case 1 | 2:
                return _number(entry, self._section.encoding(entry))
            case 3:
                return Pointer(self._type(entry.size), size=self._image.isa.word)
            case 4:
                contents, count = self._section.array(entry)
                return Array(self._type(contents), count)
            case 5:
                return self._signature(entry.size, entry.vlen, entry.at)
            case 10:
                return Typedef(entry.name, self._type(entry.size))
            case 14:
                return self._type(self._section.slice(entry)[0])
        return self._type(entry.size)  # volatile, const, restrict

    def _signature(self, returns: int, count: int, at: int) -> Function:
        numbers = self._section.parameters(count, at)
        varargs = bool(numbers) and numbers[-1] == 0
        parameters = tuple(map(self._type, numbers[:-1] if varargs else numbers))
        return Function(self._type(returns), parameters, varargs)

    def _member(self, name: str, number: int, offset: int) -> Member:
        """Return a member: a bit-field if its type is an integer of fewer bits, or a GNU slice."""
        own = number & ~self._section.child if number & self._section.child == self._section.child else 0
        entry = self._section.entries[own - 1] if 0 < own <= len(self._section.entries) else None
        if entry is not None and entry.kind == SLICE:
            base, shift, bits = self._section.slice(entry)
            return Member(name, self._type(base), offset + shift, bits)
        if entry is not None and entry.kind == INTEGER:
            bits = self._section.encoding(entry) & 0xFFFF
            if bits and bits != 8 * entry.size:
                return Member(name, self._type(number), offset, bits)
        return Member(name, self._type(number), offset)

    # -- symbols

    @cached_property
    def _symbol_table(self) -> list[tuple[str, str]]:
        """Return name and type of the symbols of the tables of objects and functions, in order."""
        table = self._image.elf.get_section_by_name(".dynsym" if self._section.dynamic else ".symtab")
        return [
            (symbol.name, symbol["st_info"]["type"])
            for symbol in (table.iter_symbols() if table is not None else ())
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name not in _SKIPPED
        ]

    def _symbols(self, kind: str) -> list[str]:
        return [name for name, type_ in self._symbol_table if type_ == kind]

    @cached_property
    def _objects(self) -> Mapping[str, int]:
        """Type numbers of variables by name; in GNU's format also those of their own section."""
        section = self._section
        end = section.offsets.functions
        if not section.dialect.flat_functions:
            return dict(zip(self._symbols("STT_OBJECT"), section.numbers(section.offsets.objects, end), strict=False))
        found = dict(
            zip(
                self._indexed(section.header[6], section.header[7], "STT_OBJECT"),
                section.numbers(section.header[4], end),
                strict=False,
            )
        )
        for at in range(section.header[8], section.header[9] - 7, 8):
            name, number = struct.unpack_from("<II", section.body, at)
            found[section.name(name)] = number
        return found

    def _indexed(self, start: int, end: int, kind: str) -> list[str]:
        """Return the names for one of GNU's tables: its index, or all symbols of a kind."""
        if start >= end:
            return self._symbols(kind)
        return [self._section.name(reference) for reference in self._section.numbers(start, end)]

    @cached_property
    def _functions(self) -> Mapping[str, Function]:
        section = self._section
        if section.dialect.flat_functions:
            names = self._indexed(section.header[7], section.header[8], "STT_FUNC")
            pairs = zip(names, section.numbers(section.header[5], section.header[6]), strict=False)
            return {name: type_ for name, number in pairs if isinstance(type_ := self._type(number), Function)}
        width = struct.calcsize(section.dialect.argument)
        at, end = section.offsets.functions, section.offsets.types
        found: dict[str, Function] = {}
        for name in self._symbols("STT_FUNC"):
            if at + width > end:
                break
            (info,) = struct.unpack_from(section.dialect.argument, section.body, at)
            at += width
            if not info:
                continue  # nothing is known of it
            count = info & section.dialect.vlen_mask
            (returns,) = struct.unpack_from(section.dialect.argument, section.body, at)
            found[name] = self._signature(returns, count, at + width)
            at += width * (1 + count)
        return found


def _number(entry: Entry, data: int) -> Type:
    """Return an integer or float: D's own if it is the same."""
    known = base_type(entry.name.split())
    if known is VOID:
        return VOID
    if entry.kind == FLOAT:
        return known if isinstance(known, Float) else Float(entry.name, entry.size)
    encoding, signed = data >> 24, bool(data >> 24 & _SIGNED)
    size = entry.size
    if isinstance(known, Integer) and (known.size, known.signed) == (size, signed):
        return known
    return Integer(known.name if isinstance(known, Integer) else entry.name, size, signed, bool(encoding & _CHARACTER))
