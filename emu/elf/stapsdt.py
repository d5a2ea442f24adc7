"""USDT markers of Linux programs.

The notes that SystemTap's sys/sdt.h leaves in an ELF file, and their arguments.

A marker is one nop in the code, and a note that says where it is, what it is called, and where its
arguments are at that moment: constants, registers, memory.

Sources: the note format of SystemTap (sys/sdt.h), the operand forms that gcc writes, and the rules
of libbpf (usdt.c).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.isa.base import Isa
from emu.isa.elf_format import InRegister
from emu.support.immutable import immutable
from emu.support.words import WORD_MASK

NOTES: Final = ".note.stapsdt"
BASE: Final = ".stapsdt.base"
OWNER: Final = b"stapsdt\0"
_TYPE: Final = 3
_HEAD: Final = struct.Struct("<III")
# By the number of bytes of a word.
_ADDRESSES: Final = {8: struct.Struct("<QQQ"), 4: struct.Struct("<III")}
_SIZES: Final = frozenset({1, 2, 4, 8})
# A symbol's distance from the global offset table (System V ABI, Intel386 supplement).
_GOTOFF: Final = "GOTOFF"


class MarkerArgumentError(ValueError):
    """An argument whose form is unknown."""


@immutable
class Marker:
    """One marker at one address; inlined code may have the same marker at several."""

    provider: str
    name: str
    location: int
    """Virtual address of the nop, after the adjustment for prelinked files."""
    semaphore: int
    """Virtual address of the counter that is not 0 while the probe is enabled; 0: there is none."""
    arguments: str
    """The locations of its arguments, as the compiler wrote them."""
    raw: tuple[int, int, int]
    """Location, base and semaphore as they are in the note (`readelf -n` prints these)."""


def markers(image: Image) -> tuple[Marker, ...]:
    """Return the markers of a file, in the order of the notes.

    Raises `emu.elf.image.ElfError` if the notes are corrupt.
    """
    section = image.section(NOTES)
    if section is None:
        return ()
    base = image.section(BASE)
    found = []
    for owner, kind, descriptor in _notes(image, section.data):
        if owner == OWNER and kind == _TYPE:
            found.append(_marker(image, descriptor, None if base is None else base.address))
    return tuple(found)


def _notes(image: Image, data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    offset = 0
    while offset < len(data):
        if len(data) - offset < _HEAD.size:
            raise ElfError(f"{image.path}: corrupt {NOTES}: a note ends early")
        name_size, size, kind = _HEAD.unpack_from(data, offset)
        name_at = offset + _HEAD.size
        at = name_at + (name_size + 3 & ~3)
        if at + size > len(data):
            raise ElfError(f"{image.path}: corrupt {NOTES}: a note ends early")
        yield data[name_at : name_at + name_size], kind, data[at : at + size]
        offset = at + (size + 3 & ~3)


def _marker(image: Image, descriptor: bytes, base: int | None) -> Marker:
    form = _ADDRESSES[image.isa.word]
    texts = descriptor[form.size :].split(b"\0")
    if len(descriptor) < form.size + 3 or len(texts) < 4 or not texts[1]:
        raise ElfError(f"{image.path}: corrupt {NOTES}: a note without its three strings")
    raw: tuple[int, int, int] = form.unpack_from(descriptor)
    location, noted, semaphore = raw
    shift = base - noted if base is not None and noted else 0
    provider, name, arguments = (text.decode("utf-8", "backslashreplace") for text in texts[:3])
    return Marker(
        provider, name, location + shift & image.isa.address_mask, semaphore, "" if arguments == ":" else arguments, raw
    )


# Arguments


class Constant(NamedTuple):
    """A number."""

    value: int


class InMemory(NamedTuple):
    """Memory at symbol + base + (scaled * scale) + displacement.

    A symbol's distance from rip, or from the global offset table whose address is in the base, is
    the symbol's own address: there is no base then.
    """

    base: str
    displacement: int = 0
    scaled: str = ""
    scale: int = 1
    symbol: str = ""


Operand = Constant | InRegister | InMemory


@immutable
class MarkerArgument:
    """One argument: its size in bytes, whether it is signed, and its location."""

    size: int
    signed: bool
    floating: bool
    operand: Operand
    text: str


_ELEMENT: Final = re.compile(r"(?:(-?)([1-8])(f?)@)?(.+)")
_ITEMS: Final = re.compile(r"(?:[^\s\[\]]|\[[^\]]*\])+")


def parse_arguments(text: str, isa: Isa) -> tuple[MarkerArgument, ...]:
    """Read a marker's arguments.

    Raises `MarkerArgumentError`, which names an argument of an unknown form.
    """
    return tuple(_argument(element, isa) for element in _ITEMS.findall(text))


def _argument(text: str, isa: Isa) -> MarkerArgument:
    found = _ELEMENT.fullmatch(text)
    if found is None or (found[2] and int(found[2]) not in _SIZES):
        raise MarkerArgumentError(f"'{text}' is not an argument of a marker")
    sign, size, floating, operand = found.groups()
    return MarkerArgument(int(size or isa.word), bool(sign), bool(floating), _operand(operand, isa), text)


def _operand(text: str, isa: Isa) -> Operand:
    forms, names = isa.elf.operands, isa.elf.operands.names
    if found := forms.constant.fullmatch(text):
        return Constant(int(found[1], 0))
    if (found := forms.register.fullmatch(text)) and found[1] in names:
        return names[found[1]]
    if found := forms.memory.fullmatch(text):
        parts = found.groupdict()
        registers = [parts.get(name) for name in ("base", "index")]
        if all(name is None or name in names for name in registers):
            base, index = (names[name].register if name else "" for name in registers)
            displacement = int(parts.get("displacement") or "0", 0) + int(parts.get("after") or "0", 0)
            symbol, at, relation = (parts.get("symbol") or "").partition("@")
            if at and relation != _GOTOFF:
                raise MarkerArgumentError(f"'{text}': the base of @{relation} is not known")
            if symbol and (at or base == isa.registers.pc):
                base = ""
            return InMemory(base, displacement, index, int(parts.get("scale") or 1), symbol)
    raise MarkerArgumentError(f"'{text}' is not an operand of {isa.title}")


def evaluate(
    argument: MarkerArgument,
    read_register: Callable[[str], int],
    load: Callable[[int, int], int],
    resolve: Callable[[str], int],
) -> int:
    """Return an argument's value, 64 bits unsigned; only the bytes of its size are significant.

    `load(address, size)` reads memory, and its exceptions are passed on; `resolve` returns the
    address of a symbol.
    """
    operand = argument.operand
    match operand:
        case Constant(value):
            raw = value
        case InRegister(register, shift):
            raw = read_register(register) >> shift
        case InMemory():
            raw = load(address_of(operand, read_register, resolve), argument.size)
    bits = 8 * argument.size
    raw &= (1 << bits) - 1
    if argument.signed and raw >> bits - 1:
        raw -= 1 << bits
    return raw & WORD_MASK


def address_of(operand: InMemory, read_register: Callable[[str], int], resolve: Callable[[str], int]) -> int:
    """Return the address of an operand in memory."""
    symbol = resolve(operand.symbol) if operand.symbol else 0
    base = symbol + (read_register(operand.base) if operand.base else 0)
    index = read_register(operand.scaled) * operand.scale if operand.scaled else 0
    return base + index + operand.displacement & WORD_MASK


_TYPES: Final = {1: "8", 2: "16", 4: "32", 8: "64"}


def fetch_argument(
    argument: MarkerArgument, register_name: Callable[[str], str], distance: Callable[[str], int | None]
) -> str | None:
    """Return the argument in the syntax of uprobe_events, None if impossible (perf's probe-file.c).

    `distance` returns the offset of a symbol in the file, relative to the code of the probe; None:
    the file has no such symbol.
    """
    kind = ("s" if argument.signed else "u") + _TYPES[argument.size]
    match argument.operand:
        case InRegister(register, 0) if not argument.floating:
            return f"%{register_name(register)}:{kind}"
        case InMemory(base, displacement, "", 1, "") if base and not argument.floating:
            return f"{displacement:+d}(%{register_name(base)}):{kind}"
        case InMemory("", displacement, "", 1, symbol) if symbol and not argument.floating:
            offset = distance(symbol)
            return None if offset is None or offset + displacement < 0 else f"@+{offset + displacement:#x}:{kind}"
        case _:
            return None


def select(found: Sequence[Marker], provider: str, name: str) -> tuple[Marker, ...]:
    """Return the markers of these names; an empty provider means any."""
    return tuple(one for one in found if one.name == name and provider in ("", one.provider))
