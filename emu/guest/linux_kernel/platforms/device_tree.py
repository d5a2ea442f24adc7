"""A writer of flattened device trees.

Source: Devicetree Specification v0.4, chapter 5 (flattened format) and 2.2.4 (property values).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

_MAGIC: Final = 0xD00D_FEED
_BEGIN_NODE, _END_NODE, _PROP, _END = 1, 2, 3, 9
_VERSION, _LAST_COMPATIBLE = 17, 16
# Ten words of header.
_HEADER: Final = 40

Value: TypeAlias = "bool | int | str | bytes | Sequence[int | str | bytes]"


class Node(NamedTuple):
    """A node: its name, its properties, its children."""

    name: str
    properties: dict[str, Value]
    children: tuple[Node, ...] = ()


def node(name: str, properties: dict[str, Value], *children: Node) -> Node:
    """Return a node with its children."""
    return Node(name, properties, children)


def cells(*numbers: int) -> bytes:
    """Return 64-bit numbers as two cells each."""
    return b"".join(struct.pack(">Q", number) for number in numbers)


def flatten(root: Node, reserved: Iterable[tuple[int, int]] = ()) -> bytes:
    """Return a tree in the flattened format.

    `reserved` are ranges of memory, (address, size) in bytes, which the kernel does not use.
    """
    strings = bytearray()
    offsets: dict[str, int] = {}
    structure = bytearray()

    def write(one: Node) -> None:
        structure.extend(struct.pack(">I", _BEGIN_NODE) + _aligned(one.name.encode() + b"\0"))
        for name, value in one.properties.items():
            if name not in offsets:
                offsets[name] = len(strings)
                strings.extend(name.encode() + b"\0")
            data = _bytes(value)
            structure.extend(struct.pack(">III", _PROP, len(data), offsets[name]) + _aligned(data))
        for child in one.children:
            write(child)
        structure.extend(struct.pack(">I", _END_NODE))

    write(root)
    structure.extend(struct.pack(">I", _END))
    reservations = b"".join(struct.pack(">QQ", *each) for each in (*reserved, (0, 0)))
    at = _HEADER + len(reservations)
    end = at + len(structure)
    header = struct.pack(
        ">10I",
        _MAGIC,
        end + len(strings),
        at,
        end,
        _HEADER,
        _VERSION,
        _LAST_COMPATIBLE,
        0,  # the number of the CPU that boots
        len(strings),
        len(structure),
    )
    return header + reservations + bytes(structure) + bytes(strings)


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _bytes(value: Value) -> bytes:
    """Return a property's value: True is empty, a number is a cell, a string ends with a NUL."""
    if value is True:
        return b""
    if isinstance(value, int):
        return struct.pack(">I", value)
    if isinstance(value, str):
        return value.encode() + b"\0"
    if isinstance(value, bytes):
        return value
    return b"".join(_bytes(each) for each in value)
