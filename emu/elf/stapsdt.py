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
# Bytes of a register that has half of a value.
_HALF: Final = 4


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

    A symbol's distance from rip, or from the global offset table whose address is in the base, and
    the low bits of its address are the symbol's own address: there is no base then.
    """

    base: str
    displacement: int = 0
    scaled: str = ""
    scale: int = 1
    symbol: str = ""
    segment: str = ""
    """The register with the base of the operand's segment."""
    thread: bool = False
    """Whether the symbol stands for its distance from the thread pointer."""
    extended: str = ""
    """How the index is extended from 32 bits: "s", "u", or "": it is not."""


class Unreadable(NamedTuple):
    """An operand of no known form, or of one that is not read."""

    why: str


Operand = Constant | InRegister | InMemory | Unreadable


@immutable
class MarkerArgument:
    """One argument: its size in bytes, whether it is signed, and its location."""

    size: int
    signed: bool
    floating: bool
    operand: Operand
    text: str

    def unreadable(self, image: Image) -> str:
        """Return why the argument cannot be read in a program of a file; "": it can."""
        match self.operand:
            case Unreadable(why):
                return why
            case InMemory(symbol=symbol) if symbol and not image.defines(symbol):
                return f"there is no symbol '{symbol}' (stripped, or a label of the compiler's own?)"
            case InMemory(symbol=symbol, thread=True):
                try:
                    image.thread_offset(symbol)
                except ElfError as error:
                    return str(error)
        return ""


_ELEMENT: Final = re.compile(r"(?:(-?)([0-9]+)(f?)@)?(.+)", re.ASCII)
_ITEMS: Final = re.compile(r"(?:[^\s\[\]]|\[[^\]]*\])+")
# Relations of a symbol after which the operand is the symbol itself, whatever the base is: it has the rest of the
# address, or linkers have relaxed the instruction that was to compute it.
_OWN: Final = frozenset({"gotoff", "lo12", "lo"})
# The same for a thread-local symbol.
_THREAD: Final = frozenset({"tprel_lo", "tprel_lo12", "tprel_lo12_nc"})
# A distance from the segment's base.
_IN_SEGMENT: Final = frozenset({"tpoff", "ntpoff"})


def parse_arguments(text: str, isa: Isa) -> tuple[MarkerArgument, ...]:
    """Read a marker's arguments; one in no known form is `Unreadable`."""
    return tuple(_argument(element, isa) for element in _ITEMS.findall(text))


def _argument(text: str, isa: Isa) -> MarkerArgument:
    found = _ELEMENT.fullmatch(text)
    assert found is not None, "an item has a character"
    sign, digits, floating, operand = found.groups()
    size = int(digits) if digits and len(digits) < 4 else 0 if digits else isa.word
    if size in _SIZES:
        where = _operand(operand, isa)
        if size > isa.word and isinstance(where, InRegister) and not where.high:
            where = Unreadable(f"{operand} has no {size} bytes")
    else:
        size, where = isa.word, Unreadable(f"{digits} bytes are not an integer")
    return MarkerArgument(size, bool(sign), bool(floating), where, text)


def _operand(text: str, isa: Isa) -> Operand:
    forms, names = isa.elf.operands, isa.elf.operands.names
    if found := forms.constant.fullmatch(text):
        return Constant(int(found[1], 0))
    if found := forms.register.fullmatch(text):
        if found[1] in forms.zero:
            return Constant(0)
        return names.get(found[1]) or Unreadable(f"'{found[1]}' is not a general register of {isa.title}")
    if found := forms.memory.fullmatch(text):
        parts = {name: part or "" for name, part in found.groupdict().items()}
        return _memory(text, parts, isa)
    return Unreadable(f"'{text}' is not an operand of {isa.title}")


def _memory(text: str, parts: dict[str, str], isa: Isa) -> Operand:
    forms, relation = isa.elf.operands, parts.get("relation", "").lower()
    if relation and relation not in _OWN | _THREAD | _IN_SEGMENT:
        return Unreadable(f"'{text}': the base of {parts['relation']} is not known")
    registers = [parts.get(name, "") for name in ("base", "index")]
    unknown = [name for name in registers if name and name not in forms.names]
    if unknown:
        return Unreadable(f"'{unknown[0]}' is not a general register of {isa.title}")
    base, index = (forms.names[name].register if name else "" for name in registers)
    symbol = parts.get("symbol", "")
    if relation in _THREAD:
        base = forms.thread
    elif relation in _OWN or (symbol and base == isa.registers.pc):
        base = ""
    return InMemory(
        base,
        sum(int(parts.get(name) or "0", 0) for name in ("displacement", "after")),
        index,
        int(parts.get("scale") or 1) << int(parts.get("shift") or 0),
        symbol,
        segment=f"{parts['segment']}_base" if parts.get("segment") else "",
        thread=relation in _THREAD | _IN_SEGMENT,
        extended=parts["extend"][0] if parts.get("extend", "").endswith("w") else "",
    )


def evaluate(
    argument: MarkerArgument,
    read_register: Callable[[str], int],
    load: Callable[[int, int], int],
    resolve: Callable[[str, bool], int],
    mask: int = WORD_MASK,
) -> int:
    """Return an argument's value, 64 bits unsigned; only the bytes of its size are significant.

    What is unreadable is 0.  `load(address, size)` reads memory, and its exceptions are passed on;
    `resolve(symbol, thread)` returns the address of a symbol, or its distance from the thread
    pointer; `mask` has the bits of addresses.
    """
    operand = argument.operand
    match operand:
        case Constant(value):
            raw = value
        case InRegister(register, shift, high):
            raw = read_register(register) >> shift
            if high and argument.size > _HALF:
                raw |= read_register(high) << 8 * _HALF
        case InMemory():
            raw = load(address_of(operand, read_register, resolve) & mask, argument.size)
        case Unreadable():
            raw = 0
    bits = 8 * argument.size
    raw &= (1 << bits) - 1
    if argument.signed and raw >> bits - 1:
        raw -= 1 << bits
    return raw & WORD_MASK


def address_of(operand: InMemory, read_register: Callable[[str], int], resolve: Callable[[str, bool], int]) -> int:
    """Return the address of an operand in memory."""
    symbol = resolve(operand.symbol, operand.thread) if operand.symbol else 0
    base = sum(read_register(name) for name in (operand.base, operand.segment) if name)
    index = read_register(operand.scaled) if operand.scaled else 0
    if operand.extended:
        index &= 0xFFFF_FFFF
        if operand.extended == "s" and index >> 31:
            index -= 1 << 32
    return symbol + base + index * operand.scale + operand.displacement & WORD_MASK


def resolver(image: Image, bias: int, pc: Callable[[], int]) -> Callable[[str, bool], int]:
    """Return the look-up of a file's symbols, which is loaded at `bias`, for `evaluate`.

    `pc` returns the address of the code that asks.  The look-up raises `ElfError`.
    """

    def resolve(symbol: str, thread: bool) -> int:
        near = pc() - bias
        return image.thread_offset(symbol, near) if thread else image.symbol(symbol, near).value + bias

    return resolve


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
        case InRegister(register, 0, high) if not argument.floating and not (high and argument.size > _HALF):
            return f"%{register_name(register)}:{kind}"
        case InMemory(base, displacement, "", 1, "", "") if base and not argument.floating:
            return f"{displacement:+d}(%{register_name(base)}):{kind}"
        case InMemory("", displacement, "", 1, symbol, "", False) if symbol and not argument.floating:
            offset = distance(symbol)
            return None if offset is None or offset + displacement < 0 else f"@+{offset + displacement:#x}:{kind}"
        case _:
            return None


def select(found: Sequence[Marker], provider: str, name: str) -> tuple[Marker, ...]:
    """Return the markers of these names; an empty provider means any."""
    return tuple(one for one in found if one.name == name and provider in ("", one.provider))
