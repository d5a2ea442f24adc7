"""The functions of a stripped file: from what `strip` leaves, and from what was taken out.

In this order; each names only what those before it do not:

* the table of the debug file, found by build identifier or by
  `.gnu_debuglink` (`emu.elf.debug_files`);
* `.gnu_debugdata`, a symbol table that is compressed by xz (Fedora and others put it there);
* the dynamic symbol table, which has what other objects may call;
* the table that a Go program keeps for its runtime (`emu.elf.pclntab`);
* `.eh_frame`: where code begins and ends, without a name.  Such a function is named by its address:
  `eh_frame.4a10`.  Compilers describe a part of a function that they move elsewhere as another one,
  so some of these are not the starts of functions.
"""

from __future__ import annotations

import lzma
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from emu.elf.debug_files import build_id, debug_file, linked_file
from emu.elf.dynamic import Dynamic, Version
from emu.elf.file import ElfError, ElfFile, ElfKind
from emu.elf.headers import SectionKind
from emu.elf.pclntab import go_functions
from emu.elf.symbols import Binding, Symbol, SymbolType, matcher, symbol_entries, symbol_kind, symbol_size
from emu.elf.unwind.entries import FrameEntries

# The beginning of a name from .eh_frame: it says where the name is from.
MARK: Final = "eh_frame."

_UNDEFINED: Final = 0  # SHN_UNDEF
_TEXT: Final = 1
# Bytes of a symbol table: more than any program's, less than what a small xz stream may become.
_LARGEST: Final = 1 << 28
# Sections of code whose frames are the linker's.
_LINKAGE: Final = ".plt"


def file_symbols(file: ElfFile, addresses: Mapping[int, int], entries: FrameEntries) -> Iterator[Symbol]:
    """Yield the defined, named symbols of a file, those of a table in its order.

    `addresses` are the addresses of a relocatable file's sections by number.  Raises `ElfError`.
    """
    table = file.section_of_kind(SectionKind.SYMBOLS)
    if table is not None or file.kind is ElfKind.RELOCATABLE:
        yield from table_symbols(file, SectionKind.SYMBOLS, addresses, file)
        return
    known: set[tuple[str, int, str]] = set()
    functions: list[Symbol] = []
    for symbol in _named(file):
        key = symbol.name, symbol.value, symbol.version
        if key not in known:
            known.add(key)
            if symbol.is_function and symbol.size:
                functions.append(symbol)
            yield symbol
    yield from _unnamed(file, functions, entries)


def table_symbols(file: ElfFile, kind: SectionKind, addresses: Mapping[int, int], of: ElfFile) -> Iterator[Symbol]:
    """Yield the symbols of a file's table of a kind.  Raises `ElfError`.

    Their versions are those of `of`, from which the file was taken if it is a debug file.
    """
    table = file.section_of_kind(kind)
    if table is None:
        return
    entries = file.section_data("the symbol table", table)
    size = symbol_size(file.isa.word)
    if table.entry_size != size or len(entries) % size or table.link >= len(file.sections):
        raise file.error("corrupt symbol table")
    strings = file.section_data("the string table", file.sections[table.link])
    found = _decoded(file, entries, strings, addresses)
    dynamic = Dynamic(of)
    yield from _by_number(found, dynamic) if kind is SectionKind.DYNAMIC_SYMBOLS else _by_name(found, of, dynamic)


def _decoded(
    file: ElfFile, entries: bytes, strings: bytes, addresses: Mapping[int, int]
) -> Iterator[tuple[int, Symbol]]:
    """Yield the defined symbols, each with its number."""
    relocatable = file.kind is ElfKind.RELOCATABLE
    source = ""
    for number, (offset, info, section, value, size) in enumerate(symbol_entries(entries, file.isa.word)):
        type_, binding = symbol_kind(info)
        if type_ is SymbolType.FILE:
            source = ""
        if not offset or section == _UNDEFINED or (relocatable and section not in addresses):
            continue
        end = strings.find(b"\0", offset)
        if end < 0:
            raise file.error("corrupt symbol table: a name outside its string table")
        name = strings[offset:end].decode(errors="backslashreplace")
        if type_ is SymbolType.FILE:
            source = name
        at = value + addresses[section] if relocatable else value
        own = source if binding is Binding.LOCAL else ""
        yield number, Symbol(name, at, size, type_, binding, section, file=own)


def _by_number(symbols: Iterable[tuple[int, Symbol]], dynamic: Dynamic) -> Iterator[Symbol]:
    """Give dynamic symbols their versions."""
    versions = dynamic.versions
    for number, symbol in symbols:
        version = versions[number] if number < len(versions) else Version()
        yield symbol._replace(version=version.name, hidden=version.hidden) if version.name else symbol


def _by_name(symbols: Iterable[tuple[int, Symbol]], of: ElfFile, dynamic: Dynamic) -> Iterator[Symbol]:
    """Give symbols their versions: bfd writes them behind the name, other linkers leave them out."""
    known = dynamic.version_names
    if not known:
        yield from (symbol for _, symbol in symbols)
        return
    others = {
        (symbol.name, symbol.value): symbol
        for symbol in _by_number(_decoded(of, dynamic.symbols, dynamic.strings, {}), dynamic)
        if symbol.version
    }
    for _, symbol in symbols:
        plain, _, mark = symbol.name.partition("@")
        version = mark.removeprefix("@")
        other = others.get((symbol.name, symbol.value)) if symbol.binding is not Binding.LOCAL else None
        if version in known:
            yield symbol._replace(name=plain, version=version, hidden=not mark.startswith("@"))
        elif other is not None:
            yield symbol._replace(version=other.version, hidden=other.hidden)
        else:
            yield symbol


def _named(file: ElfFile) -> Iterator[Symbol]:
    for other in (debug_companion(file), _debug_data(file)):
        if other is not None and other.isa is file.isa:
            try:
                yield from list(table_symbols(other, SectionKind.SYMBOLS, {}, file))
            except ElfError:
                continue  # it is not this file that is corrupt
    if file.section_of_kind(SectionKind.DYNAMIC_SYMBOLS) is not None:
        yield from table_symbols(file, SectionKind.DYNAMIC_SYMBOLS, {}, file)
    else:
        dynamic = Dynamic(file)
        yield from _by_number(_decoded(file, dynamic.symbols, dynamic.strings, {}), dynamic)
    for name, address, size in go_functions(file):
        yield Symbol(name, address, size, SymbolType.FUNC, Binding.LOCAL, _TEXT)


def _section(file: ElfFile, name: str) -> bytes:
    found = next((one for one in file.sections if one.name == name and one.kind != SectionKind.NO_BITS), None)
    return bytes(file.section_data(f"section {name}", found)) if found is not None else b""


def debug_companion(file: ElfFile) -> ElfFile | None:
    """Return the debug file of a file; None: there is none that can be used."""
    path = debug_file(build_id(_section(file, ".note.gnu.build-id")))
    if path is None and (link := _section(file, ".gnu_debuglink")):
        path = linked_file(link, file.path)
    try:
        return ElfFile(path) if path is not None else None
    except ElfError:
        return None


def _debug_data(file: ElfFile) -> ElfFile | None:
    packed = _section(file, ".gnu_debugdata")
    if not packed:
        return None
    try:
        content = lzma.LZMADecompressor(memlimit=_LARGEST).decompress(packed, _LARGEST)
        return ElfFile(f"{file.path}(.gnu_debugdata)", content)
    except (lzma.LZMAError, EOFError, ElfError):
        return None


def _unnamed(file: ElfFile, functions: Iterable[Symbol], entries: FrameEntries) -> Iterator[Symbol]:
    """Yield the code that only .eh_frame tells of."""
    named = sorted({(symbol.value, symbol.size) for symbol in functions})
    starts = [start for start, _ in named]
    linkage = [range(one.address, one.address + one.size) for one in file.sections if one.name.startswith(_LINKAGE)]
    for entry in entries.all:
        index = bisect_right(starts, entry.start) - 1
        inside = index >= 0 and entry.start < named[index][0] + named[index][1]
        if inside or entry.common.signal or any(entry.start in section for section in linkage):
            continue
        yield Symbol(f"{MARK}{entry.start:x}", entry.start, entry.size, SymbolType.FUNC, Binding.LOCAL, _TEXT)


def selected(symbols: Iterable[Symbol], glob: str) -> list[Symbol]:
    """Return the symbols whose names, `name@MARK` included, match a glob; an empty one matches all.

    A name from .eh_frame is not the function's own: only a glob that means all names, or that
    begins as such names do, matches it.
    """
    if not glob.strip("*"):
        return list(symbols)
    invented, matches = glob.startswith(MARK), matcher(glob)
    return [one for one in symbols if matches(one) and (invented or not one.name.startswith(MARK))]


def marked(symbols: Iterable[Symbol]) -> Sequence[Symbol]:
    """Return those that have their name from .eh_frame."""
    return [symbol for symbol in symbols if symbol.name.startswith(MARK)]
