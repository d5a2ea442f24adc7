"""ELF files: their loadable segments, sections, symbols and code.

`emu.elf.file` reads and checks a file's tables, `emu.elf.symbols` finds symbols.

Machines share images: a file that many of them have is read once in a process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import IntFlag
from functools import cached_property
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emu.elf.dynamic import Dynamic
from emu.elf.file import ElfError, ElfFile, ElfKind
from emu.elf.headers import SectionKind, SegmentHeader, SegmentKind, decompressed
from emu.elf.source.inlined import Source
from emu.elf.source.lines import SourceLines
from emu.elf.source.units import Units
from emu.elf.stripped import debug_companion, file_symbols
from emu.elf.symbols import MARKS, Binding, Symbol, SymbolTable, SymbolType, told_apart
from emu.elf.unwind.entries import FrameEntries, FrameSection
from emu.elf.unwind.rows import FrameTable
from emu.isa import Isa
from emu.support.did_you_mean import did_you_mean
from emu.support.immutable import immutable
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
from functools import lru_cache
from typing import Final

from emu.isa.disassembly import instructions

# The largest permitted size of a segment in memory: more than any guest has, but less than a size with a flipped high
# bit.
_LARGEST = 1 << 36
_WRITABLE, _ALLOCATED, _EXECUTABLE, _COMPRESSED = 1, 2, 4, 0x800  # SHF_*
_LINKAGE = ".plt"
# Version 1; the frames' address pc-relative, their number absolute, the table relative to its section: what binutils
# and all other linkers write.
FRAME_HEADER: Final = bytes((1, 0x1B, 0x03, 0x3B))


class SegmentFlag(IntFlag):
    """The permitted accesses to a segment's memory (PF_*)."""

    EXECUTE = 1
    WRITE = 2
    READ = 4


@immutable
class Segment:
    """A stretch of memory: `data` first, then zeros up to `memsz` bytes."""

    vaddr: int
    paddr: int
    data: bytes
    memsz: int
    flags: SegmentFlag


class FileSection(NamedTuple):
    """A section as it is in the file."""

    address: int
    data: bytes
    compressed: bool = False

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        return self.address + len(self.data)


class Image:
    """A little-endian ELF file of a known machine.

    The sections of a relocatable file are laid out one after another from `base`, as a kernel
    linker does; its references stay unresolved.  For all other files, addresses are the file's own.
    """

    def __init__(
        self, path: str | Path, *, isa: Isa | None = None, base: int = 0x10000, content: bytes | None = None
    ) -> None:
        """Open a file, or use the given content if it is not a file of this host.

        Raises `ElfError`; also if `isa` is given and the file is for another one.
        """
        self._base = base
        self._file = file = ElfFile(path, content)
        self.path, self.isa, self.kind = file.path, file.isa, file.kind
        self.entry = file.header.entry
        if isa is not None and isa is not self.isa:
            raise self._file.error(f"made for {self.isa.name}, not {isa.name}")

    @property
    def elf(self) -> ELFFile:
        """The view of pyelftools, for DWARF.  Raises `ElfError`."""
        return self._file.elf

    @property
    def has_dwarf(self) -> bool:
        """Whether the file has DWARF."""
        return self._file.has_dwarf

    def tables(self, kind: SectionKind) -> Iterator[bytes]:
        """Yield the content of the sections of a kind.  Raises `ElfError`."""
        for section in self._file.sections:
            if section.kind == kind:
                yield bytes(self._file.section_data(f"section {section.name}", section))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments to be loaded, by virtual address."""
        found = self._section_segments() if self.kind is ElfKind.RELOCATABLE else self._load_segments()
        segments = tuple(sorted(found, key=lambda segment: segment.vaddr))
        for lower, upper in pairwise(segments):
            if lower.vaddr + lower.memsz > upper.vaddr:
                raise self._file.error(f"the segments at {lower.vaddr:#x} and {upper.vaddr:#x} overlap")
        return segments

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The defined, named symbols in the order of the symbol table.

        Without a symbol table they are those that `emu.elf.stripped` finds.
        """
        addresses = self._section_addresses if self.kind is ElfKind.RELOCATABLE else {}
        return tuple(self._true_sizes(tuple(file_symbols(self._file, addresses, self.frame_entries))))

    @staticmethod
    def _true_sizes(symbols: Sequence[Symbol]) -> Iterator[Symbol]:
        """Yield symbols; a function that reaches into a part of another one ends at the next.

        mold 1 shortens RISC-V code when it relaxes it, and leaves the sizes of the symbols.
        """
        extents = sorted({(one.value, one.value + one.size) for one in symbols if one.is_function and one.size})
        for one in symbols:
            end = one.value + one.size
            if one.is_function and one.size:
                first = bisect_right(extents, (one.value, 1 << 64))
                inside = extents[first : bisect_right(extents, (end - 1, 1 << 64), lo=first)]
                if any(other_end > end for _, other_end in inside):
                    yield one._replace(size=inside[0][0] - one.value)
                    continue
            yield one

    @cached_property
    def functions(self) -> tuple[Symbol, ...]:
        """The symbols that name functions, in the order of the symbol table."""
        return tuple(symbol for symbol in self.symbols if symbol.is_function)

    def is_code(self, symbol: Symbol) -> bool:
        """Return whether a symbol names code: without a type it has to be in a section of code."""
        if symbol.is_function:
            return bool(symbol.section)
        plain = symbol.type is SymbolType.NOTYPE and not symbol.name.startswith(MARKS)
        return plain and any(one.address <= symbol.value < one.end for one in self.code_sections)

    @cached_property
    def function_names(self) -> Sequence[str]:
        """The names by which `named` finds each function, sorted.

        Where several functions have a name, they are `name@MARK`.
        """
        found: list[str] = []
        for name, symbols in self._table.names.items():
            code = {one.value: one for one in reversed(symbols) if self.is_code(one)}
            plain = {one.value for one in self._table.named(name)} & code.keys()
            hidden = [one for value, one in code.items() if value not in plain]
            several = [code[value] for value in sorted(plain)]
            found += told_apart(name, several) if len(several) > 1 else [name] if several else []
            found += told_apart(name, hidden)
        return sorted(found)

    @cached_property
    def _table(self) -> SymbolTable:
        return SymbolTable(self.symbols)

    def named(self, name: str) -> Sequence[Symbol]:
        """Return the symbols that a name means, one for each address (`SymbolTable.named`)."""
        return list({symbol.value: symbol for symbol in reversed(self._table.named(name))}.values())[::-1]

    def meant(self, name: str, near: int) -> Sequence[Symbol]:
        """Return the symbols that the code at an address can mean by a name; several are ambiguous.

        The local symbol of its own source file hides all others, and is hidden from other files.
        """
        found = self.named(name)
        if len(found) < 2 or not (file := self.source_file(near)):
            return found
        own = [one for one in found if one.file.rpartition("/")[2] == file]
        return own[:1] or [one for one in found if one.binding is not Binding.LOCAL] or found

    def source_file(self, address: int) -> str:
        """Return the base name of the source file of some code, "" if it is not known.

        It is what DWARF says, or the file of the local function that has it, or of those on both
        sides.
        """
        lines = [frame.line for frame in self.source.frames(address)]
        if lines and lines[-1] is not None:
            return lines[-1].file.rpartition("/")[2]
        here = self.symbol_at(address)
        if here is not None and here[0].file:
            return here[0].file.rpartition("/")[2]
        index = bisect_right(self._local_functions, address, key=attrgetter("value"))
        before, after = self._local_functions[:index][-1:], self._local_functions[index:][:1]
        same = before and after and before[0].file == after[0].file
        return before[0].file.rpartition("/")[2] if same else ""

    @cached_property
    def _local_functions(self) -> Sequence[Symbol]:
        """The functions whose source files are known, by address."""
        return sorted((one for one in self.functions if one.file), key=attrgetter("value"))

    def symbol(self, name: str, near: int | None = None) -> Symbol:
        """Return a symbol by name, a global one before a local one; the code at `near` asks for it.

        Raises `ElfError`, naming the nearest.
        """
        found = self._table.named(name) if near is None else self.meant(name, near)
        if found:
            return found[0]
        if not self.symbols:
            raise self._file.error("no symbols (stripped?)")
        raise self._file.error(f"no symbol '{name}'{did_you_mean(name, self._table.names)}")

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that contains an address, and the offset in it.

        Functions are preferred to all other symbols.
        """
        return self._table.at(address)

    def caller_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that contains a return address of a stack, and the offset in it.

        A function may end with a call that does not return: then the return address is the first
        one after the function.
        """
        return self._table.caller_at(address)

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of the file at an address, fewer at the end of a segment.

        The zeros that a loader puts after a segment's data are not included.  Raises
        `BadAddressError`.
        """
        index = bisect_right(self._starts, address) - 1
        segment = self.segments[index] if index >= 0 else None
        if segment is None or address >= segment.vaddr + len(segment.data):
            raise BadAddressError(address)
        offset = address - segment.vaddr
        return segment.data[offset : offset + size]

    def section(self, name: str) -> FileSection | None:
        """Return a section's address and content, None if no section has that name."""
        found = next((section for section in self._file.sections if section.name == name), None)
        if found is None:
            return None
        in_file = found.kind != SectionKind.NO_BITS
        data = bytes(self._file.section_data(f"section {name}", found)) if in_file else b""
        return FileSection(found.address, data, bool(found.flags & _COMPRESSED))

    @cached_property
    def code_sections(self) -> tuple[FileSection, ...]:
        """The sections that hold instructions, at their addresses.

        For a file without section headers, they are the executable segments.
        """
        found = tuple(
            FileSection(
                self._section_addresses[number] if self.kind is ElfKind.RELOCATABLE else section.address,
                bytes(self._file.section_data(f"section {section.name}", section)),
            )
            for number, section in enumerate(self._file.sections)
            if section.flags & _EXECUTABLE and section.flags & _ALLOCATED and section.kind != SectionKind.NO_BITS
        )
        loaded = (segment for segment in self.segments if segment.flags & SegmentFlag.EXECUTE)
        return found or tuple(FileSection(segment.vaddr, bytes(segment.data)) for segment in loaded)

    @cached_property
    def frame_entries(self) -> FrameEntries:
        """The file's description of its code's frames: .eh_frame, then .debug_frame."""
        return FrameEntries(tuple(self._frame_sections()), self.isa.word)

    @cached_property
    def frames(self) -> FrameTable:
        """Rules of unwinding, by instruction."""
        return FrameTable(self.frame_entries, self.isa.word)

    @cached_property
    def describes_frames(self) -> bool:
        """Whether it says more of its frames than what linkers write about their own code."""
        own = self.linkage_tables
        return any(not any(one.address <= entry.start < one.end for one in own) for entry in self.frame_entries.all)

    @cached_property
    def source(self) -> Source:
        """The source of the code, by the file's DWARF or that of its debug file."""
        companion = None if self._file.section_of_kind(SectionKind.SYMBOLS) else debug_companion(self._file)
        return Source(Units(companion or self._file))

    @property
    def source_lines(self) -> SourceLines:
        """The source lines of the code."""
        return self.source.lines

    @cached_property
    def linkage_tables(self) -> tuple[FileSection, ...]:
        """The sections of code that link to other objects (.plt)."""
        names = (section.name for section in self._file.sections if section.name.startswith(_LINKAGE))
        found = (self.section(name) for name in names)
        return tuple(section for section in found if section is not None)

    @cached_property
    def interpreter(self) -> str | None:
        """The program that loads this one (PT_INTERP), None if the file names none.

        Raises `ElfError`: its name is empty, or outside the file.
        """
        for header in self._file.program_headers:
            if header.kind == SegmentKind.INTERPRETER:
                self._file.check_extent("the interpreter's name", header.offset, header.file_size)
                text = self._file.data[header.offset : header.offset + header.file_size]
                name = text.split(b"\0", 1)[0].decode(errors="backslashreplace")
                if not name:
                    raise self._file.error("the interpreter's name is empty")
                return name
        return None

    def defines(self, name: str) -> bool:
        """Return whether there is a symbol of that name."""
        try:
            self.symbol(name)
        except ElfError:
            return False
        return True

    def thread_offset(self, name: str, near: int | None = None) -> int:
        """Return the distance of a thread-local variable of a program from the thread pointer.

        The code at `near` asks for it (`symbol`).  Raises `ElfError`.  Source: the processor
        supplements of the System V ABI; lld's getTlsTpOffset().
        """
        symbol = self.symbol(name, near)
        header = next((one for one in self._file.program_headers if one.kind == SegmentKind.THREAD), None)
        if header is None or symbol.type is not SymbolType.TLS:
            raise self._file.error(f"'{name}' is not thread-local")
        first, last = self.isa.elf.thread_block, max(header.alignment, 1) - 1
        if first is None:
            return symbol.value - header.memory_size - (-header.address - header.memory_size & last)
        return symbol.value + first + (header.address - first & last)

    @cached_property
    def soname(self) -> str | None:
        """The name by which other files request this library (DT_SONAME), None if it has none."""
        return Dynamic(self._file).soname

    def addresses_of(self, offset: int, size: int = 1) -> Sequence[int]:
        """Return the virtual addresses of a byte of the file.

        There is one for each loaded segment that has some of the `size` bytes from there on.
        Several segments may share a page of the file, which is then mapped once for each of them.
        Those that contain code come first.
        """
        found = [
            (not header.flags & SegmentFlag.EXECUTE, offset + header.address - header.offset)
            for header in self._loaded
            if header.offset < offset + size and offset < header.offset + max(header.file_size, 1)
        ]
        return list(dict.fromkeys(address for _, address in sorted(found, key=itemgetter(0))))

    def offset_of(self, address: int) -> int | None:
        """Return the offset in the file of a virtual address, None if no loaded segment has it."""
        for header in self._loaded:
            if 0 <= address - header.address < header.file_size:
                return int(address - header.address + header.offset)
        return None

    @cached_property
    def _loaded(self) -> Sequence[SegmentHeader]:
        return [header for header in self._file.program_headers if header.kind == SegmentKind.LOAD]

    def code(self, symbol: Symbol, beyond: int = 0) -> bytes:
        """Return the bytes of a function, and up to `beyond` of those that follow.

        Raises `BadAddressError`.
        """
        return self.read(symbol.value, symbol.size + beyond)

    # Reading the file.

    def _filled(self, name: str, segment: Segment, offset: int, size: int) -> Segment:
        """Return a segment with its data, `size` bytes of the file from `offset`."""
        if segment.memsz > _LARGEST or segment.vaddr + segment.memsz > 1 << 64:
            raise self._file.error(f"corrupt: {name} at {segment.vaddr:#x} asks for {segment.memsz:#x} bytes of memory")
        if size > segment.memsz:
            raise self._file.error(f"corrupt: {name} at {segment.vaddr:#x} has more bytes in the file than in memory")
        self._file.check_extent(name, offset, size)
        return replace(segment, data=self._file.data[offset : offset + size])

    def _load_segments(self) -> Iterator[Segment]:
        for number, header in enumerate(self._file.program_headers):
            if header.kind == SegmentKind.LOAD and header.memory_size:
                flags = SegmentFlag(header.flags & 7)
                segment = Segment(header.address, header.physical, b"", header.memory_size, flags)
                yield self._filled(f"segment {number}", segment, header.offset, header.file_size)

    @cached_property
    def frame_header(self) -> FileSection | None:
        """The sorted table of the frames (`.eh_frame_hdr`, PT_GNU_EH_FRAME), None if it has none."""
        for header in self._file.program_headers:
            if header.kind == SegmentKind.FRAME_HEADER:
                data = self._file.data[header.offset : header.offset + header.file_size]
                return FileSection(header.address, bytes(data))
        return None

    def _frame_sections(self) -> Iterator[FrameSection]:
        if self.kind is ElfKind.RELOCATABLE:
            return
        header = self.frame_header
        if not self._file.sections and header is not None and header.data.startswith(FRAME_HEADER):
            # The distance from here to .eh_frame, which ends with a zero before its segment does.
            start = header.address + 4 + int.from_bytes(header.data[4:8], "little", signed=True)
            with suppress(BadAddressError):
                yield FrameSection(start, bytes(self.read(start, _LARGEST)), debug=False)
        for name, debug in ((".eh_frame", False), (".debug_frame", True)):
            found = next((section for section in self._file.sections if section.name == name), None)
            if found is not None and found.kind != SectionKind.NO_BITS:
                data = bytes(self._file.section_data(f"section {name}", found))
                if found.flags & _COMPRESSED:
                    data = decompressed(data, self.isa.word)
                yield FrameSection(found.address, data, debug)

    @cached_property
    def _section_addresses(self) -> Mapping[int, int]:
        """Return the addresses of the sections of a relocatable file, by section number."""
        addresses: dict[int, int] = {}
        end = self._base
        for number, section in enumerate(self._file.sections):
            if section.flags & _ALLOCATED:
                alignment = section.alignment or 1
                addresses[number] = -(-end // alignment) * alignment
                end = addresses[number] + section.size
        return addresses

    def _section_segments(self) -> Iterator[Segment]:
        for number, address in self._section_addresses.items():
            section = self._file.sections[number]
            if section.size:
                flags = SegmentFlag.READ
                flags |= SegmentFlag.WRITE if section.flags & _WRITABLE else 0
                flags |= SegmentFlag.EXECUTE if section.flags & _EXECUTABLE else 0
                segment = Segment(address, address, b"", section.size, flags)
                in_file = 0 if section.kind == SectionKind.NO_BITS else section.size
                yield self._filled(f"section {section.name}", segment, section.offset, in_file)

    @cached_property
    def _starts(self) -> list[int]:
        return [segment.vaddr for segment in self.segments]


# Images that are kept: those of the teaching kernel's file system on every ISA, and some more.
_KEPT: Final = 128


def image_of_file(path: Path, isa: Isa) -> Image:
    """Return the image of a file of this host; if the file changes, that is another image.

    Raises `ElfError`.
    """
    try:
        status = path.stat()
    except OSError:
        return Image(path, isa=isa)  # its message says what is wrong
    return _of_file(path, isa, status.st_mtime_ns, status.st_size)


@lru_cache(_KEPT)
def _of_file(path: Path, isa: Isa, _changed: int, _size: int) -> Image:
    return Image(path, isa=isa)


@lru_cache(_KEPT)
def image_of_content(path: str, content: bytes, isa: Isa | None = None) -> Image:
    """Return the image of a file of a guest.  Raises `ElfError`."""
    return Image(path, isa=isa, content=content)


def no_instruction(image: Image, address: int) -> str | None:
    """Return the reason why no instruction can begin at an address; None: one may begin there.

    Instructions are decoded from the start of the function that contains the address; without its
    symbol every address is possible.
    """
    segment = next((one for one in image.segments if one.vaddr <= address < one.vaddr + one.memsz), None)
    if segment is None:
        return "no segment is loaded there"
    if not segment.flags & SegmentFlag.EXECUTE:
        return "it holds data, not code"
    found = image.symbol_at(address)
    if found is None or not found[0].is_function:
        return None
    symbol, offset = found
    for at, length in instructions(image.isa.instruction_length, image.code(symbol), offset):
        if at + length > offset:
            return f"it is inside an instruction of {symbol.name}"
    return None
