"""ELF files: what has to be in memory, and what is where.

pyelftools reads the headers.  Symbols are unpacked here: it makes several objects of each, and a
kernel has a hundred thousand.  Every file is taken as hostile: sizes and places are checked before
they are believed, and whatever is wrong becomes an `ElfError` of one line.
"""

from __future__ import annotations

import difflib
import io
import mmap
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, IntFlag
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple, cast

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from emu.guest.base import BadAddressError
from emu.isa import ISAS, Isa

_LARGEST = 1 << 36
# Bytes of memory a segment may ask for: more than any guest has, less than what a flipped bit makes of a size.
_LONGEST_INSTRUCTION = 15

_SYMBOL_64 = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, section, value, size
_SYMBOL_32 = struct.Struct("<IIIBBH")  # Elf32_Sym: name, value, size, info, other, section
# EI_CLASS -> bytes of the ELF header, of a program header, of a section header.
_HEADER_SIZES = {1: (52, 32, 40), 2: (64, 56, 64)}
_UNDEFINED, _NO_SECTION = 0, 0xFF00  # SHN_UNDEF, SHN_LORESERVE
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4  # SHF_*
_MARKS = ("$", ".")  # assemblers' notes on what follows ($x, $d, .L1): not places anybody named


class ElfError(Exception):
    """A file that cannot be used: its name, and what is wrong with it, on one line."""


class ElfKind(Enum):
    """What a file is for (e_type)."""

    RELOCATABLE = "ET_REL"
    EXECUTABLE = "ET_EXEC"
    SHARED = "ET_DYN"
    """Shared objects and position-independent executables."""


class SegmentFlag(IntFlag):
    """What a segment's memory may be used for (PF_*)."""

    EXECUTE = 1
    WRITE = 2
    READ = 4


class SymbolType(IntEnum):
    """What a symbol names (STT_*)."""

    NOTYPE = 0
    OBJECT = 1
    FUNC = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    TLS = 6
    GNU_IFUNC = 10


class Binding(IntEnum):
    """How a symbol takes part in linking (STB_*)."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2


FUNCTION_TYPES = frozenset({SymbolType.FUNC, SymbolType.GNU_IFUNC})
_PLACED = frozenset({SymbolType.NOTYPE, SymbolType.OBJECT})

_TYPES = {int(member): member for member in SymbolType}
_BINDINGS = {int(member): member for member in Binding}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of memory: `data` first, then zeros up to `memsz` bytes."""

    vaddr: int
    paddr: int
    data: bytes
    memsz: int
    flags: SegmentFlag


class FileSection(NamedTuple):
    """A section as the file has it."""

    address: int
    data: bytes


class Symbol(NamedTuple):
    """A name for an address.

    Types and bindings this module has no name for are NOTYPE and LOCAL.
    """

    name: str
    value: int
    size: int
    type: SymbolType
    binding: Binding
    section: int
    """Number of its section; from SHN_LORESERVE (0xff00) on, of none: an absolute value, say."""

    @property
    def is_function(self) -> bool:
        """Return whether it names code that can be called."""
        return self.type in FUNCTION_TYPES


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name most like a misspelt one, None if none is."""
    return next(iter(difflib.get_close_matches(name, names, 1)), None)


class Image:
    """A little-endian ELF file of a known machine.

    The sections of a relocatable file are laid out one after another from `base`, as a kernel
    linker does; its references stay unresolved.  Elsewhere addresses are the file's own.
    """

    def __init__(
        self, path: str | Path, *, isa: Isa | None = None, base: int = 0x10000, content: bytes | None = None
    ) -> None:
        """Open a file, or take its content where it is not a file of this host's.

        Raises `ElfError`; also if `isa` is given and the file is for another one.
        """
        self.path = Path(path)
        self._base = base
        self._data = self._map() if content is None else content
        self.elf = self._parse()
        """pyelftools' view, for notes, DWARF and whatever else only one user needs."""
        self.isa = self._find_isa()
        self.kind = self._find_kind()
        self.entry = int(self.elf.header["e_entry"])
        if isa is not None and isa is not self.isa:
            raise self._error(f"made for {self.isa.name}, not {isa.name}")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What is to be loaded, by virtual address."""
        found = self._section_segments() if self.kind is ElfKind.RELOCATABLE else self._load_segments()
        segments = tuple(sorted(found, key=lambda segment: segment.vaddr))
        for lower, upper in pairwise(segments):
            if lower.vaddr + lower.memsz > upper.vaddr:
                raise self._error(f"the segments at {lower.vaddr:#x} and {upper.vaddr:#x} overlap")
        return segments

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The defined, named symbols in the order of the symbol table.

        Of the dynamic one where there is no other.
        """
        return tuple(self._read_symbols())

    @cached_property
    def functions(self) -> tuple[Symbol, ...]:
        """The symbols that name functions, in the order of the symbol table."""
        return tuple(symbol for symbol in self.symbols if symbol.is_function)

    def symbol(self, name: str) -> Symbol:
        """Return a symbol by name, a global one before a local one.

        Raises `ElfError`, naming the nearest.
        """
        try:
            return self._by_name[name]
        except KeyError:
            pass
        if not self.symbols:
            raise self._error("no symbols (stripped?)")
        near = nearest(name, self._by_name)
        raise self._error(f"no symbol '{name}'" + (f" (did you mean '{near}'?)" if near else ""))

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that holds an address, and the offset in it.

        A function before anything else.
        """
        below = []
        for starts, symbols in self._by_address:
            place = bisect_right(starts, address) - 1
            if place >= 0:
                below.append(symbols[place])
        for symbol in below:
            # One without a size reaches to the next that has one.
            reaches = not symbol.size and not any(other.size and other.value > symbol.value for other in below)
            if address - symbol.value < symbol.size or reaches:
                return symbol, address - symbol.value
        return None

    def caller_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that holds an address of a stack, and the offset in it.

        A function may end in a call that does not come back: then the address is the first one
        behind it.
        """
        found, before = self.symbol_at(address), self.symbol_at(address - 1)
        ends = before is not None and before[0].is_function and before[1] + 1 == before[0].size
        if before is not None and ends and not (found and found[0].size):
            return before[0], before[0].size
        return found

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of what the file has at an address, fewer where that ends.

        The zeros a loader puts after a segment's data are not there.  Raises `BadAddressError`.
        """
        place = bisect_right(self._starts, address) - 1
        segment = self.segments[place] if place >= 0 else None
        if segment is None or address >= segment.vaddr + len(segment.data):
            raise BadAddressError(address)
        offset = address - segment.vaddr
        return segment.data[offset : offset + size]

    def section(self, name: str) -> FileSection | None:
        """Return a section's address and content, None if there is none of that name."""
        found = next((section for section in self._sections if section.name == name), None)
        if found is None:
            return None
        in_file = found["sh_type"] != "SHT_NOBITS"
        return FileSection(found["sh_addr"], bytes(self._section_data(f"section {name}", found)) if in_file else b"")

    @cached_property
    def code_sections(self) -> tuple[FileSection, ...]:
        """The sections that hold instructions, at their addresses.

        Without section headers the segments that do.
        """
        found = tuple(
            FileSection(
                self._places[number] if self.kind is ElfKind.RELOCATABLE else section["sh_addr"],
                bytes(self._section_data(f"section {section.name}", section)),
            )
            for number, section in enumerate(self._sections)
            if section["sh_flags"] & _EXECUTABLE
            and section["sh_flags"] & _ALLOCATED
            and section["sh_type"] != "SHT_NOBITS"
        )
        loaded = (segment for segment in self.segments if segment.flags & SegmentFlag.EXECUTE)
        return found or tuple(FileSection(segment.vaddr, bytes(segment.data)) for segment in loaded)

    @cached_property
    def interpreter(self) -> str | None:
        """The program that loads this one (PT_INTERP), None if there is none."""
        for header in self._program_headers:
            if header["p_type"] == "PT_INTERP":
                self._check_extent("the interpreter's name", header["p_offset"], header["p_filesz"])
                text = self._data[header["p_offset"] : header["p_offset"] + header["p_filesz"]]
                return text.split(b"\0", 1)[0].decode(errors="backslashreplace")
        return None

    def defines(self, name: str) -> bool:
        """Return whether there is a symbol of that name."""
        try:
            self.symbol(name)
        except ElfError:
            return False
        return True

    @cached_property
    def soname(self) -> str | None:
        """The name by which others ask for this library (DT_SONAME), None if there is none."""
        dynamic, strings = self.section(".dynamic"), self.section(".dynstr")
        if dynamic is None or strings is None:
            return None
        # Tag of the dynamic section (System V ABI).
        soname, entry = 14, struct.Struct("<QQ" if self.isa.word == 8 else "<II")
        whole = len(dynamic.data) // entry.size * entry.size
        for tag, value in entry.iter_unpack(dynamic.data[:whole]):
            if tag == soname:
                return strings.data[value:].split(b"\0", 1)[0].decode(errors="backslashreplace")
        return None

    def address_of(self, offset: int) -> int | None:
        """Return the virtual address of a byte of the file, None if no loaded segment has it.

        Segments are mapped by whole pages: a page's first byte may lie before the segment's.
        """
        for header in self._program_headers:
            if header["p_type"] == "PT_LOAD":
                start = header["p_offset"] & ~0xFFF
                if start <= offset < header["p_offset"] + max(header["p_filesz"], 1):
                    return int(header["p_vaddr"] - header["p_offset"] + offset)
        return None

    def offset_of(self, address: int) -> int | None:
        """Return the offset in the file of a virtual address, None if no loaded segment has it."""
        for header in self._program_headers:
            if header["p_type"] == "PT_LOAD" and 0 <= address - header["p_vaddr"] < header["p_filesz"]:
                return int(address - header["p_vaddr"] + header["p_offset"])
        return None

    def no_instruction(self, address: int) -> str | None:
        """Say why no instruction begins at an address, None if one may.

        Without symbols there is no telling.

        Instructions are walked from the start of the function that holds the address.
        """
        place = bisect_right(self._starts, address) - 1
        segment = self.segments[place] if place >= 0 else None
        if segment is None or address >= segment.vaddr + segment.memsz:
            return "there is nothing there"
        if not segment.flags & SegmentFlag.EXECUTE:
            return "there is data, not code"
        found = self.symbol_at(address)
        if found is None or not found[0].is_function:
            return None
        symbol, offset = found
        code, at = self.code(symbol), 0
        while at < offset:
            length = self.isa.instruction_length(code[at : at + _LONGEST_INSTRUCTION])
            if not length:
                return None
            at += length
        return None if at == offset else f"it is in the middle of an instruction of {symbol.name}"

    def code(self, symbol: Symbol, beyond: int = 0) -> bytes:
        """Return the bytes of a function, and up to `beyond` of those that follow.

        Raises `BadAddressError`.
        """
        return self.read(symbol.value, symbol.size + beyond)

    # Reading the file.

    def _error(self, what: str) -> ElfError:
        return ElfError(f"{self.path}: {what}")

    def _map(self) -> mmap.mmap:
        try:
            if not self.path.is_file():
                self.path.stat()  # says why, if there is nothing at all
                raise self._error("not a file")
            with self.path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._error((error.strerror or str(error)).lower()) from None
        except ValueError:
            raise self._error("not an ELF file (empty)") from None

    def _parse(self) -> ELFFile:
        """Read the headers with pyelftools; each table is checked before it is walked."""
        if self._data[:2] == b"#!":
            raise self._error("a script, not an ELF file")
        if self._data[:4] != b"\x7fELF":
            raise self._error("not an ELF file")
        sizes = _HEADER_SIZES.get(self._data[4]) if len(self._data) > 5 and self._data[5] == 1 else None
        if len(self._data) < (sizes[0] if sizes else 6):
            raise self._error("truncated: the ELF header is not whole")
        if sizes is None:
            raise self._error("not a little-endian ELF file; no other kind is known")
        _, program_header, section_header = sizes
        try:
            elf = ELFFile(io.BytesIO(self._data) if isinstance(self._data, bytes) else cast("IO[bytes]", self._data))
            header = elf.header
            self._check_class(elf)
            self._check_table(
                "program header", header["e_phoff"], header["e_phnum"], header["e_phentsize"], program_header
            )
            self._check_table(
                "section header", header["e_shoff"], header["e_shnum"], header["e_shentsize"], section_header
            )
            self._sections = tuple(elf.iter_sections())
            self._program_headers = tuple(segment.header for segment in elf.iter_segments())
        except ElfError:
            raise
        except Exception as error:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            raise self._error(f"corrupt headers ({str(error) or type(error).__name__})") from None
        return elf

    def _check_class(self, elf: ELFFile) -> None:
        """Refuse a file whose words are not its machine's, before its tables are looked for."""
        isa = next((isa for isa in ISAS.values() if isa.elf.machine == elf.header["e_machine"]), None)
        if isa is not None and elf.elfclass != 8 * isa.word:
            raise self._error(f"a {elf.elfclass}-bit file for {isa.name}, whose files are {8 * isa.word}-bit")

    def _check_table(self, what: str, offset: int, count: int, entry_size: int, expected: int) -> None:
        if offset and entry_size != expected:
            raise self._error(f"corrupt: {what}s of {entry_size} bytes")
        self._check_extent(f"the {what} table", offset, count * entry_size)

    def _check_extent(self, what: str, offset: int, size: int) -> None:
        if size and offset + size > len(self._data):  # where nothing is in the file, any offset will do
            raise self._error(f"truncated: {what} ends at byte {offset + size:#x} of {len(self._data):#x}")

    def _find_isa(self) -> Isa:
        machine = self.elf.header["e_machine"]
        for isa in ISAS.values():
            if isa.elf.machine == machine:
                return isa
        raise self._error(f"made for machine {machine}; known are {', '.join(ISAS)}")

    def _find_kind(self) -> ElfKind:
        try:
            return ElfKind(self.elf.header["e_type"])
        except ValueError:
            kind = self.elf.header["e_type"]
            what = "a core file" if kind == "ET_CORE" else f"of type {kind}"
            raise self._error(f"{what}; executables, shared objects and modules are known") from None

    def _filled(self, name: str, segment: Segment, offset: int, size: int) -> Segment:
        """Return a segment with its data, `size` bytes of the file from `offset`."""
        if segment.memsz > _LARGEST or segment.vaddr + segment.memsz > 1 << 64:
            raise self._error(f"corrupt: {name} at {segment.vaddr:#x} asks for {segment.memsz:#x} bytes of memory")
        if size > segment.memsz:
            raise self._error(f"corrupt: {name} at {segment.vaddr:#x} has more bytes in the file than in memory")
        self._check_extent(name, offset, size)
        return replace(segment, data=self._data[offset : offset + size])

    def _load_segments(self) -> Iterator[Segment]:
        for number, header in enumerate(self._program_headers):
            if header["p_type"] == "PT_LOAD" and header["p_memsz"]:
                flags = SegmentFlag(header["p_flags"] & 7)
                segment = Segment(header["p_vaddr"], header["p_paddr"], b"", header["p_memsz"], flags)
                yield self._filled(f"segment {number}", segment, header["p_offset"], header["p_filesz"])

    @cached_property
    def _places(self) -> Mapping[int, int]:
        """Where the sections of a relocatable file go: address by section number."""
        places: dict[int, int] = {}
        end = self._base
        for number, section in enumerate(self._sections):
            if section["sh_flags"] & _ALLOCATED:
                alignment = section["sh_addralign"] or 1
                places[number] = -(-end // alignment) * alignment
                end = places[number] + section["sh_size"]
        return places

    def _section_segments(self) -> Iterator[Segment]:
        for number, address in self._places.items():
            section = self._sections[number]
            if section["sh_size"]:
                flags = SegmentFlag.READ
                flags |= SegmentFlag.WRITE if section["sh_flags"] & _WRITABLE else 0
                flags |= SegmentFlag.EXECUTE if section["sh_flags"] & _EXECUTABLE else 0
                segment = Segment(address, address, b"", section["sh_size"], flags)
                in_file = 0 if section["sh_type"] == "SHT_NOBITS" else section["sh_size"]
                yield self._filled(f"section {section.name}", segment, section["sh_offset"], in_file)

    def _read_symbols(self) -> Iterator[Symbol]:
        table = self._section_of_type("SHT_SYMTAB") or self._section_of_type("SHT_DYNSYM")
        if table is None:
            return
        entries = self._section_data("the symbol table", table)
        link = table["sh_link"]
        size = symbol_size(self.isa.word)
        if table["sh_entsize"] != size or len(entries) % size or link >= len(self._sections):
            raise self._error("corrupt symbol table")
        strings = self._section_data("the string table", self._sections[link])
        relocatable = self.kind is ElfKind.RELOCATABLE
        for offset, info, section, value, size in symbol_entries(entries, self.isa.word):
            if not offset or section == _UNDEFINED or (relocatable and section not in self._places):
                continue
            end = strings.find(b"\0", offset)
            if end < 0:
                raise self._error("corrupt symbol table: a name outside its string table")
            yield Symbol(
                strings[offset:end].decode(errors="backslashreplace"),
                value + self._places[section] if relocatable else value,
                size,
                _TYPES.get(info & 15, SymbolType.NOTYPE),
                _BINDINGS.get(info >> 4, Binding.LOCAL),
                section,
            )

    def _section_of_type(self, kind: str) -> Section | None:
        return next((section for section in self._sections if section["sh_type"] == kind), None)

    def _section_data(self, what: str, section: Section) -> bytes:
        self._check_extent(what, section["sh_offset"], section["sh_size"])
        return self._data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]

    @cached_property
    def _by_name(self) -> Mapping[str, Symbol]:
        """Symbols by name; of two with one name, the global one, else the first."""
        found: dict[str, Symbol] = {}
        for symbol in self.symbols:
            if symbol.name not in found or found[symbol.name].binding is Binding.LOCAL is not symbol.binding:
                found[symbol.name] = symbol
        return found

    @cached_property
    def _by_address(self) -> tuple[tuple[list[int], list[Symbol]], ...]:
        """Functions, then everything else that has a place.

        The starts to search, and the symbols there.
        """
        others = [
            symbol
            for symbol in self.symbols
            if symbol.type in _PLACED and symbol.section < _NO_SECTION and not symbol.name.startswith(_MARKS)
        ]
        return tuple(_sorted_by_address(symbols) for symbols in (self.functions, others))

    @cached_property
    def _starts(self) -> list[int]:
        return [segment.vaddr for segment in self.segments]


def _sorted_by_address(symbols: Sequence[Symbol]) -> tuple[list[int], list[Symbol]]:
    """Return one symbol per address, by address: a global one, a sized one, the first."""
    ranked = sorted(symbols, key=lambda symbol: (symbol.value, symbol.binding is Binding.LOCAL, not symbol.size))
    unique = {symbol.value: symbol for symbol in reversed(ranked)}
    chosen = sorted(unique.values(), key=lambda symbol: symbol.value)
    return [symbol.value for symbol in chosen], chosen


def symbol_size(word: int) -> int:
    """Return the size of a symbol table's entry, for machines with so many bytes in a word."""
    return (_SYMBOL_64 if word == 8 else _SYMBOL_32).size


def symbol_entries(data: bytes, word: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (name, info, section, value, size) of the entries of a symbol table."""
    if word == 8:
        for name, info, _other, section, value, size in _SYMBOL_64.iter_unpack(data):
            yield name, info, section, value, size
    else:
        for name, value, size, info, _other, section in _SYMBOL_32.iter_unpack(data):
            yield name, info, section, value, size
