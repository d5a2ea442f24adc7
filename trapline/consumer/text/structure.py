"""print(): data shown by their type, structs member by member.

Source: FreeBSD libdtrace dt_print.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from emu.support.immutable import immutable
from trapline.consumer.text.columns import c_string, decode
from trapline.d.types.rules import size_of
from trapline.d.types.types import (
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Integer,
    Member,
    Pointer,
    Special,
    Type,
    ctf_name,
    resolve,
)

_INDENT: Final = "    "
_FLOATS: Final = {4: "<f", 8: "<d"}

# Names the function at an address, None if there is none.
Symbol = Callable[[int], str | None]


def show(type_: Type, data: bytes, symbol: Symbol) -> str:
    """Show data of a type after its name; a newline ends all but structs and unions."""
    text = f"{ctf_name(type_)} {_value(type_, data, symbol, _Indent())}"
    return text if isinstance(resolve(type_), Composite) else text + "\n"


def members(type_: Type, data: bytes, symbol: Symbol, name: str = "") -> Iterator[dict[str, str]]:
    """Yield a value, or a struct and its members in order, as objects for -x oformat."""
    resolved = resolve(type_)
    named = {"member-name": name} if name else {}
    if not isinstance(resolved, Composite):
        yield {**named, "name": ctf_name(type_), "value": _value(type_, data, symbol, _Indent())}
        return
    yield {**named, "name": ctf_name(type_)}
    for member in resolved.members or ():
        if member.bits:
            value = _hexadecimal(_bits(member, data))
            yield {"member-name": member.name, "name": ctf_name(member.type), "value": value}
            continue
        start = member.offset // 8
        yield from members(member.type, data[start : start + size_of(member.type)], symbol, member.name)


@immutable
class _Indent:
    """The position of a value (dt_printarg_t): how deep in structs, and in arrays around them."""

    depth: int = 0
    nest: int = 0
    """The indentation of the array that contains this value, plus one."""

    @property
    def indent(self) -> str:
        return _INDENT * (self.depth + self.nest)

    @property
    def member(self) -> _Indent:
        return _Indent(self.depth + 1, self.nest)

    @property
    def element(self) -> _Indent:
        return _Indent(0, self.nest + self.depth + 1)


def _value(type_: Type, data: bytes, symbol: Symbol, indent: _Indent) -> str:
    resolved = resolve(type_)
    match resolved:
        case Composite():
            return _composite(resolved, data, symbol, indent)
        case Array():
            return _array(resolved, data, symbol, indent)
        case Enumeration():
            value = int.from_bytes(data[: resolved.size], "little", signed=True)
            names = {number: name for name, number in (resolved.enumerators or {}).items()}
            return names.get(value, str(value))
        case Pointer(target=target, size=size):
            address = int.from_bytes(data[:size], "little")
            named = symbol(address) if isinstance(target, Function) else None
            return named or _hexadecimal(address)
        case Float(size=size) if size in _FLOATS and len(data) >= size:
            return f"{struct.unpack(_FLOATS[size], data[:size])[0]:+.7e}"
        case Special.STRING:
            return f'"{decode(c_string(data))}"'
        case Integer() if _is_character(resolved):
            return _character(data[0] if data else 0)
    return _hexadecimal(int.from_bytes(data[: size_of(type_)], "little"))


def _hexadecimal(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _is_character(type_: Type) -> bool:
    """Return whether data are shown as text: `char`, signed or not, but no `unsigned char`."""
    return isinstance(type_, Integer) and type_.character and (type_.signed or type_.name == "char")


def _character(byte: int) -> str:
    if 0x20 <= byte < 0x7F:
        return f"'{chr(byte)}'"
    return f"'\\{byte:o}'" if not byte else f"'\\{byte:03o}'"


def _composite(type_: Composite, data: bytes, symbol: Symbol, indent: _Indent) -> str:
    inner = indent.member
    lines = "".join(f"{inner.indent}{line}\n" for line in _members(type_, data, symbol, inner))
    return f"{{\n{lines}{indent.indent}}}"


def _members(type_: Composite, data: bytes, symbol: Symbol, indent: _Indent) -> Iterator[str]:
    for member in type_.members or ():
        name = ctf_name(member.type)
        gap = "" if name.endswith("*") else " "
        if member.bits:
            yield f"{name}{gap}{member.name} :{member.bits} = {_hexadecimal(_bits(member, data))}"
            continue
        part = data[member.offset // 8 : member.offset // 8 + size_of(member.type)]
        named = f"{name}{gap}{member.name} =" if member.name else _nameless(member.type)
        yield f"{named} {_value(member.type, part, symbol, indent)}"


def _nameless(type_: Type) -> str:
    """Return a type's name before a value; CTF's of a struct without a tag ends with a blank."""
    name = ctf_name(type_)
    return name if " " in name or not isinstance(type_, Composite) else f"{name} "


def _bits(member: Member, data: bytes) -> int:
    """Read a bit-field; a signed one keeps its bits as they are."""
    first, low = divmod(member.offset, 8)
    whole = int.from_bytes(data[first : first + (low + member.bits + 7) // 8], "little")
    return whole >> low & (1 << member.bits) - 1


def _array(type_: Array, data: bytes, symbol: Symbol, indent: _Indent) -> str:
    element, size = resolve(type_.element), size_of(type_.element)
    if _is_character(element) and 0 in data:
        text = c_string(data)
        if all(0x20 <= byte < 0x7F for byte in text):
            shown = f'"{text.decode("ascii")}"'
            return f"[ {shown} ]" if indent.depth else shown
    if not size:
        return "[ ]"
    inner = indent.element
    parts = (data[start : start + size] for start in range(0, size * type_.count, size))
    values = [_value(type_.element, part, symbol, inner) for part in parts]
    if not isinstance(element, Composite):
        return f"[ {', '.join(values)} ]"
    # Each struct has a line of its own, with its type.
    name = _nameless(type_.element)
    elements = ", ".join(f"\n{inner.indent}{name} {value}" for value in values)
    return f"[ {elements}\n{indent.indent}]"
