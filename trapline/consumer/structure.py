"""print(): data shown by their type, structs member by member.

Source: FreeBSD libdtrace dt_print.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from trapline.consumer.text import c_string, decode
from trapline.d.types import (
    Array,
    Composite,
    Enumeration,
    Float,
    Integer,
    Member,
    Pointer,
    Special,
    Type,
    resolve,
    size_of,
    type_name,
)

_INDENT: Final = "    "
_FLOATS: Final = {4: "<f", 8: "<d"}

# Names the function at an address, None if there is none.
Symbol = Callable[[int], str | None]


def show(type_: Type, data: bytes, symbol: Symbol) -> str:
    """Show data of a type, its name before it and a newline after it."""
    return f"{type_name(type_)} {_value(type_, data, symbol, 0)}\n"


def _value(type_: Type, data: bytes, symbol: Symbol, depth: int) -> str:
    resolved = resolve(type_)
    match resolved:
        case Composite():
            return _composite(resolved, data, symbol, depth)
        case Array():
            return _array(resolved, data, symbol, depth)
        case Enumeration():
            value = int.from_bytes(data[: resolved.size], "little", signed=True)
            names = {number: name for name, number in (resolved.enumerators or {}).items()}
            return names.get(value, str(value))
        case Pointer(size=size):
            address = int.from_bytes(data[:size], "little")
            return symbol(address) or _hexadecimal(address)
        case Float(size=size) if size in _FLOATS and len(data) >= size:
            return f"{struct.unpack(_FLOATS[size], data[:size])[0]:+.7e}"
        case Special.STRING:
            return f'"{decode(c_string(data))}"'
        case Integer(character=True, size=1):
            return _character(data[0] if data else 0)
    return _hexadecimal(int.from_bytes(data[: size_of(type_)], "little"))


def _hexadecimal(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _character(byte: int) -> str:
    if 0x20 <= byte < 0x7F:
        return f"'{chr(byte)}'"
    return f"'\\{byte:o}'" if not byte else f"'\\{byte:03o}'"


def _composite(type_: Composite, data: bytes, symbol: Symbol, depth: int) -> str:
    inner = _INDENT * (depth + 1)
    lines = "".join(f"{inner}{line}\n" for line in _members(type_, data, symbol, depth + 1))
    return f"{{\n{lines}{_INDENT * depth}}}"


def _members(type_: Composite, data: bytes, symbol: Symbol, depth: int) -> Iterator[str]:
    for member in type_.members or ():
        name = type_name(member.type)
        gap = "" if name.endswith("*") or not member.name else " "
        if member.bits:
            yield f"{name}{gap}{member.name} :{member.bits} = {_hexadecimal(_bits(member, data))}"
            continue
        part = data[member.offset // 8 : member.offset // 8 + size_of(member.type)]
        text = _value(member.type, part, symbol, depth)
        if isinstance(resolve(member.type), Array) and text.startswith('"'):
            text = f"[ {text} ]"
        yield f"{name}{gap}{member.name} = {text}"


def _bits(member: Member, data: bytes) -> int:
    """Read a bit-field; a signed one keeps its bits as they are."""
    first, low = divmod(member.offset, 8)
    whole = int.from_bytes(data[first : first + (low + member.bits + 7) // 8], "little")
    return whole >> low & (1 << member.bits) - 1


def _array(type_: Array, data: bytes, symbol: Symbol, depth: int) -> str:
    element = resolve(type_.element)
    if isinstance(element, Integer) and element.character:
        text = c_string(data)
        if text.isascii() and text.decode("latin-1").isprintable() and not any(data[len(text) :]):
            return f'"{text.decode()}"'
    size = size_of(type_.element)
    if not size:
        return "[ ]"
    parts = (data[place : place + size] for place in range(0, size * type_.count, size))
    return f"[ {', '.join(_value(type_.element, part, symbol, depth) for part in parts)} ]"
