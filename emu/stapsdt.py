"""USDT markers of Linux programs: the notes that SystemTap's sys/sdt.h leaves in an ELF file, and their arguments.

A marker is one nop in the code, and a note that says where it is, what it is called, and where its
arguments are at that moment: constants, registers, memory.

Sources: the note format of SystemTap (sys/sdt.h), the operand forms that gcc writes, and the rules
of libbpf (usdt.c).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from emu.elf import ElfError, Image
from emu.isa.base import Isa
from emu.words import WORD_MASK

NOTES: Final = ".note.stapsdt"
BASE: Final = ".stapsdt.base"
SEMAPHORES: Final = ".probes"
OWNER: Final = b"stapsdt\0"
_TYPE: Final = 3
_HEAD: Final = struct.Struct("<III")
# By the bytes of a word.
_ADDRESSES: Final = {8: struct.Struct("<QQQ"), 4: struct.Struct("<III")}
_SIZES: Final = frozenset({1, 2, 4, 8})


class MarkerArgumentError(ValueError):
    """An argument that is in no known form."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker at one place; inlined code may have the same marker at several."""

    provider: str
    name: str
    location: int
    """Virtual address of the nop, after the adjustment for prelinked files."""
    semaphore: int
    """Virtual address of the counter that says whether somebody listens; 0: there is none."""
    arguments: str
    """Where its arguments are, as the compiler wrote it."""
    raw: tuple[int, int, int]
    """Location, base and semaphore as they stand in the note (`readelf -n` prints these)."""


def markers(image: Image) -> tuple[Marker, ...]:
    """Return the markers of a file, in the order of the notes.  Raises `emu.elf.ElfError` if the notes are corrupt."""
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


class InRegister(NamedTuple):
    """A register; `shift` is 8 for ah, bh, ch and dh."""

    register: str
    shift: int = 0


class InMemory(NamedTuple):
    """Memory at base + (scaled * scale) + displacement, and the address of a symbol if one is named."""

    base: str
    displacement: int = 0
    scaled: str = ""
    scale: int = 1
    symbol: str = ""


Operand = Constant | InRegister | InMemory


@dataclass(frozen=True, slots=True)
class MarkerArgument:
    """One argument: how many bytes, whether they are signed, and where they are."""

    size: int
    signed: bool
    floating: bool
    operand: Operand
    text: str


_ELEMENT: Final = re.compile(r"(?:(-?)([1-8])(f?)@)?(.+)")
_ITEMS: Final = re.compile(r"(?:[^\s\[\]]|\[[^\]]*\])+")
# As assemblers print them: ASCII digits, of 64 bits at most, no octal.
_NUMBER: Final = r"-?(?:0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})"
_X86_WIDE: Final = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp")


def _x86_names() -> dict[str, InRegister]:
    """Return the operand of each register's name, in every width."""
    names = {"rip": InRegister("rip"), "eip": InRegister("rip")}
    for wide in _X86_WIDE:
        letters = wide[1:]
        for name in (wide, "e" + letters, letters):
            names[name] = InRegister(wide)
        if letters[1] == "x":
            names[letters[0] + "l"] = InRegister(wide)
            names[letters[0] + "h"] = InRegister(wide, 8)
        else:
            names[letters + "l"] = InRegister(wide)
    for number in range(8, 16):
        for suffix in ("", "d", "w", "b"):
            names[f"r{number}{suffix}"] = InRegister(f"r{number}")
    return names


def _aarch64_names() -> dict[str, InRegister]:
    names = {f"{letter}{number}": InRegister(f"x{number}") for number in range(29) for letter in "xw"}
    return names | {"x29": InRegister("fp"), "x30": InRegister("lr"), "sp": InRegister("sp"), "fp": InRegister("fp")}


def _riscv64_names() -> dict[str, InRegister]:
    plain = ("ra", "sp", "gp", "tp", *(f"a{n}" for n in range(8)), *(f"s{n}" for n in range(12)),
             *(f"t{n}" for n in range(7)), "pc")  # fmt: skip
    return {name: InRegister(name) for name in plain} | {"fp": InRegister("s0")}


def _i386_names() -> dict[str, InRegister]:
    """Return those that 32-bit code has; sil and its like need REX."""
    found = {name: operand for name, operand in _x86_names().items() if name[0] != "r" and name not in _REX_ONLY}
    return {
        name: InRegister("e" + operand.register[1:], operand.shift)
        for name, operand in found.items()
        if operand.register[1:].isalpha()
    }


_REX_ONLY: Final = frozenset({"sil", "dil", "bpl", "spl"})
_NAMES: Final = {
    "i386": _i386_names(),
    "x86_64": _x86_names(),
    "aarch64": _aarch64_names(),
    "riscv64": _riscv64_names(),
}


class _Forms(NamedTuple):
    """How an ISA's assembler writes operands."""

    constant: re.Pattern[str]
    register: re.Pattern[str]
    memory: re.Pattern[str]


_X86_CONSTANT: Final = re.compile(rf"\$({_NUMBER})")
_X86_REGISTER: Final = re.compile(r"%(\w+)")
_X86_PLACE: Final = rf"(?P<displacement>{_NUMBER})?\+?(?P<symbol>[A-Za-z_.$][\w.$@]*)?(?:\+(?P<after>{_NUMBER}))?"
_X86_PARTS: Final = r"\((?:%(?P<base>\w+))?(?:,%(?P<index>\w+)(?:,(?P<scale>[1248]))?)?\)"
_FORMS: Final = {
    "x86_64": _Forms(_X86_CONSTANT, _X86_REGISTER, re.compile(_X86_PLACE + _X86_PARTS)),
    # A symbol alone is an address where none is relative to the pc.
    "i386": _Forms(_X86_CONSTANT, _X86_REGISTER, re.compile(f"(?!$){_X86_PLACE}(?:{_X86_PARTS})?")),
    "aarch64": _Forms(
        re.compile(rf"#?({_NUMBER})"),
        re.compile(r"(\w+)"),
        re.compile(rf"\[\s*(?P<base>\w+)\s*(?:,\s*(?:#?(?P<displacement>{_NUMBER})|(?P<index>\w+))\s*)?\]"),
    ),
    "riscv64": _Forms(
        re.compile(rf"({_NUMBER})"),
        re.compile(r"(\w+)"),
        re.compile(rf"(?P<displacement>{_NUMBER})?\((?P<base>\w+)\)"),
    ),
}


def parse_arguments(text: str, isa: Isa) -> tuple[MarkerArgument, ...]:
    """Read a marker's arguments.  Raises `MarkerArgumentError`, naming the one that is in no known form."""
    return tuple(_argument(element, isa) for element in _ITEMS.findall(text))


def _argument(text: str, isa: Isa) -> MarkerArgument:
    found = _ELEMENT.fullmatch(text)
    if found is None or (found[2] and int(found[2]) not in _SIZES):
        raise MarkerArgumentError(f"'{text}' is no argument of a marker")
    sign, size, floating, operand = found.groups()
    return MarkerArgument(int(size or isa.word), bool(sign), bool(floating), _operand(operand, isa), text)


def _operand(text: str, isa: Isa) -> Operand:
    forms, names = _FORMS[isa.name], _NAMES[isa.name]
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
            return InMemory(base, displacement, index, int(parts.get("scale") or 1), parts.get("symbol") or "")
    raise MarkerArgumentError(f"'{text}' is no operand of {isa.title}")


def evaluate(
    argument: MarkerArgument,
    read_register: Callable[[str], int],
    load: Callable[[int, int], int],
    resolve: Callable[[str], int],
) -> int:
    """Return an argument's value, 64 bits unsigned; its size says how many bytes of it count.

    `load(address, size)` reads memory, and may raise what it likes; `resolve` gives the address of
    a symbol.
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
    """Return the address of an operand in memory; a symbol with rip is the symbol's own address."""
    if operand.symbol:
        return resolve(operand.symbol) + operand.displacement & WORD_MASK
    base = read_register(operand.base) if operand.base else 0
    index = read_register(operand.scaled) * operand.scale if operand.scaled else 0
    return base + index + operand.displacement & WORD_MASK


_TYPES: Final = {1: "8", 2: "16", 4: "32", 8: "64"}


def fetch_argument(argument: MarkerArgument, register_name: Callable[[str], str]) -> str | None:
    """Return the argument as uprobe_events write it, None if they cannot (Linux tools/perf/util/probe-file.c)."""
    kind = ("s" if argument.signed else "u") + _TYPES[argument.size]
    match argument.operand:
        case InRegister(register, 0) if not argument.floating:
            return f"%{register_name(register)}:{kind}"
        case InMemory(base, displacement, "", 1, "") if base and not argument.floating:
            return f"{displacement:+d}(%{register_name(base)}):{kind}"
        case _:
            return None


def select(found: Sequence[Marker], provider: str, name: str) -> tuple[Marker, ...]:
    """Return the markers of these names; an empty provider is any."""
    return tuple(one for one in found if one.name == name and provider in ("", one.provider))
