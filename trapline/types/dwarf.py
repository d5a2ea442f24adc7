"""C types from DWARF, as D's types.

Only the requested types are read: an index of names is made at the first request for a name that is
in the strings of the file, and a type is built when it is named.  The types of one object share
their tags, so a struct that refers to itself is one object, completed once.

Source: DWARF 4 and 5, sections 5.1 to 5.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from emu.elf.file import ElfKind
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

_T = TypeVar("_T")

# The entries that are looked up by name.
_NAMED: Final = {
    "DW_TAG_structure_type": "struct",
    "DW_TAG_class_type": "struct",
    "DW_TAG_union_type": "union",
    "DW_TAG_enumeration_type": "enum",
    "DW_TAG_typedef": "typedef",
    "DW_TAG_variable": "variable",
    "DW_TAG_subprogram": "function",
}
# DW_ATE_boolean, unsigned, unsigned_char, UTF.
_UNSIGNED: Final = frozenset({2, 7, 8, 0x10})
_CHARACTERS: Final = frozenset({6, 8, 0x10})
# Bytes of a pointer whose entry does not say.
_POINTER: Final = 8
_FLOAT: Final = 4
_PLUS_UCONST: Final = 0x23


class DwarfTypes:
    """The types of an image; without debugging information there are none."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._types: dict[int, Type] = {}
        self._asked: dict[tuple[str, str], Any] = {}

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
        return self._answer("variable", name, self._target)

    def function(self, name: str) -> Function | None:
        """Return the type of a function."""
        return self._answer("function", name, self._function)

    def _answer(self, kind: str, name: str, read: Callable[[Any], _T]) -> _T | None:
        """Read the entry of a name; None if there is none, or if it is damaged."""
        try:
            found = self._find(kind, name)
            return read(found) if found is not None else None
        except Exception:  # noqa: BLE001  (pyelftools meets damage with whatever its parser ran into)
            return None

    # -- names

    @cached_property
    def _dwarf(self) -> Any:
        if not self._image.has_dwarf:
            return None
        return self._image.elf.get_dwarf_info(relocate_dwarf_sections=self._image.kind is ElfKind.RELOCATABLE)

    @cached_property
    def _texts(self) -> tuple[bytes, ...]:
        """The sections that names are in; pyelftools reads them if they are compressed."""
        info, texts = self._image.section(".debug_info"), self._image.section(".debug_str")
        if info is not None and not info.compressed and not (texts is not None and texts.compressed):
            return (info.data,) if texts is None else (texts.data, info.data)
        sections = (self._dwarf.debug_str_sec, self._dwarf.debug_info_sec) if self._dwarf is not None else ()
        return tuple(section.stream.getvalue() for section in sections if section is not None)

    def _find(self, kind: str, name: str) -> Any:
        key = (kind, name)
        if key not in self._asked:
            needle = name.encode() + b"\0"
            known = any(needle in text for text in self._texts)
            self._asked[key] = self._index.get(key) if known else None
        return self._asked[key]

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], Any]:
        """Entries by kind and name; a definition rather than a declaration."""
        found: dict[tuple[str, str], Any] = {}
        for die in self._entries():
            kind, name = _NAMED.get(die.tag), _name(die)
            if kind and name and ((kind, name) not in found or _is_declaration(found[kind, name])):
                found[kind, name] = die
        return found

    def _entries(self) -> Iterator[Any]:
        for unit in self._dwarf.iter_CUs():
            yield from _children(unit.get_top_DIE())

    # -- types

    def _type(self, die: Any) -> Type:
        known = self._types.get(die.offset)
        if known is not None:
            return known
        match die.tag:
            case "DW_TAG_structure_type" | "DW_TAG_class_type" | "DW_TAG_union_type":
                return self._composite(die)
            case "DW_TAG_enumeration_type":
                return self._enumeration(die)
        made = self._types[die.offset] = self._simple(die)
        return made

    def _simple(self, die: Any) -> Type:
        match die.tag:
            case "DW_TAG_base_type":
                return _base(die)
            case "DW_TAG_pointer_type" | "DW_TAG_reference_type":
                return Pointer(self._target(die), size=_number(die, "DW_AT_byte_size") or _POINTER)
            case "DW_TAG_typedef":
                return Typedef(_name(die), self._target(die))
            case "DW_TAG_array_type":
                return self._array(die)
            case "DW_TAG_subroutine_type":
                return self._function(die)
        return self._target(die)  # const, volatile, restrict, atomic

    def _target(self, die: Any) -> Type:
        """Return the type that an entry refers to; without a reference it is void."""
        if "DW_AT_type" not in die.attributes:
            return VOID
        return self._type(die.get_DIE_from_attribute("DW_AT_type"))

    def _composite(self, die: Any) -> Type:
        keyword, tag = _NAMED[die.tag], _name(die)
        if _is_declaration(die):
            defined = self._find(keyword, tag)
            if defined is not None and not _is_declaration(defined):
                return self._type(defined)
        # A tag may have an entry in each unit: the first one is used for all of them.
        first = self._find(keyword, tag) if tag else die
        if first is not None and first.offset != die.offset and not _is_declaration(first):
            return self._type(first)
        made = self._types[die.offset] = Composite(Kind[keyword.upper()], tag)
        if not _is_declaration(die):
            made.members = tuple(self._members(die))
            made.size = _number(die, "DW_AT_byte_size")
            made.alignment = max((align_of(member.type) for member in made.members), default=1)
        return made

    def _members(self, die: Any) -> Iterator[Member]:
        for child in _children(die):
            if child.tag == "DW_TAG_member":
                offset, bits = _bit_offset(child)
                yield Member(_name(child), self._target(child), offset, bits)

    def _enumeration(self, die: Any) -> Type:
        made = self._types[die.offset] = Enumeration(_name(die))
        made.size = _number(die, "DW_AT_byte_size") or 4
        if not _is_declaration(die):
            made.enumerators = {
                _name(child): _number(child, "DW_AT_const_value")
                for child in _children(die)
                if child.tag == "DW_TAG_enumerator"
            }
        return made

    def _array(self, die: Any) -> Type:
        type_ = self._target(die)
        counts = []
        for child in _children(die):
            if child.tag == "DW_TAG_subrange_type":
                upper = child.attributes.get("DW_AT_upper_bound")
                known = upper is not None and isinstance(upper.value, int)
                counts.append(upper.value + 1 if known else _number(child, "DW_AT_count"))
        for count in reversed(counts):
            type_ = Array(type_, count)
        return type_

    def _function(self, die: Any) -> Function:
        children = list(_children(die))
        parameters = tuple(self._target(child) for child in children if child.tag == "DW_TAG_formal_parameter")
        varargs = any(child.tag == "DW_TAG_unspecified_parameters" for child in children)
        return Function(self._target(die), parameters, varargs)


def _children(die: Any) -> Iterator[Any]:
    """Yield an entry's children.

    Raises ValueError: DW_AT_sibling of a damaged file refers backwards. pyelftools would loop
    forever.
    """
    last = die.offset
    for child in die.iter_children():
        if child.offset <= last:
            raise ValueError(f"the entry at {last:#x} has a sibling before itself")
        last = child.offset
        yield child


def _name(die: Any) -> str:
    attribute = die.attributes.get("DW_AT_name")
    return attribute.value.decode("utf-8", "replace") if attribute is not None else ""


def _number(die: Any, attribute: str) -> int:
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else 0


def _is_declaration(die: Any) -> bool:
    return "DW_AT_declaration" in die.attributes


def _base(die: Any) -> Type:
    """Return a base type: D's own if it is the same, so that both are one type."""
    name, size, encoding = _name(die), _number(die, "DW_AT_byte_size"), _number(die, "DW_AT_encoding")
    known = base_type(name.split())
    if encoding == _FLOAT:
        return known if isinstance(known, Float) else Float(name, size)
    signed = encoding not in _UNSIGNED
    if isinstance(known, Integer) and (known.size, known.signed) == (size, signed):
        return known
    return Integer(known.name if isinstance(known, Integer) else name, size, signed, encoding in _CHARACTERS)


def _bit_offset(member: Any) -> tuple[int, int]:
    """Return a member's offset in bits, and its width if it is a bit-field."""
    location = member.attributes.get("DW_AT_data_member_location")
    start = 0
    if location is not None:
        start = location.value if isinstance(location.value, int) else _constant(location.value)
    bits = _number(member, "DW_AT_bit_size")
    if "DW_AT_data_bit_offset" in member.attributes:
        return _number(member, "DW_AT_data_bit_offset"), bits
    if "DW_AT_bit_offset" in member.attributes:
        # From the most significant bit of the storage unit: DWARF 3.
        unit = 8 * _number(member, "DW_AT_byte_size")
        return 8 * start + unit - _number(member, "DW_AT_bit_offset") - bits, bits
    return 8 * start, bits


def _constant(expression: list[int]) -> int:
    """Return the offset that DW_OP_plus_uconst adds: DWARF 2's form of a member's location."""
    if not expression or expression[0] != _PLUS_UCONST:
        return 0
    value = 0
    for index, byte in enumerate(expression[1:]):
        value |= (byte & 0x7F) << 7 * index
    return value
