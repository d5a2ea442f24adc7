"""Symbols of ELF files: decoding of symbol tables, and lookup by name and by address.

They are unpacked here, because pyelftools makes several objects for each, and a kernel has a
hundred thousand.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

_SYMBOL_64 = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, section, value, size
_SYMBOL_32 = struct.Struct("<IIIBBH")  # Elf32_Sym: name, value, size, info, other, section
_NO_SECTION = 0xFF00  # SHN_LORESERVE
MARKS = ("$", ".")  # assemblers' marks ($x, $d, .L1): they are not names of functions or data


class SymbolType(IntEnum):
    """The type of a symbol (STT_*)."""

    NOTYPE = 0
    OBJECT = 1
    FUNC = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    TLS = 6
    GNU_IFUNC = 10


class Binding(IntEnum):
    """The binding of a symbol in linking (STB_*)."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2


FUNCTION_TYPES = frozenset({SymbolType.FUNC, SymbolType.GNU_IFUNC})
_PLACED = frozenset({SymbolType.NOTYPE, SymbolType.OBJECT})

_TYPES = {int(member): member for member in SymbolType}
_BINDINGS = {int(member): member for member in Binding}


class Symbol(NamedTuple):
    """A name for an address.

    Types and bindings that this module does not name are NOTYPE and LOCAL.
    """

    name: str
    value: int
    size: int
    type: SymbolType
    binding: Binding
    section: int
    """Number of its section; from SHN_LORESERVE (0xff00) on it has none, for example an absolute
    value."""
    version: str = ""
    """The version, which is not part of the name; "": it has none."""
    hidden: bool = False
    """Whether the plain name means another version (`name@VERSION`, not `name@@VERSION`)."""
    file: str = ""
    """The source file of a local symbol, as its compiler was given it; "": unknown."""

    @property
    def marks(self) -> frozenset[str]:
        """What may follow the name and an `@`, to tell it from others of that name."""
        return frozenset({self.version, self.file, self.file.rpartition("/")[2], hex(self.value)}) - {""}

    @property
    def mark(self) -> str:
        """The shortest of them that tells it from most others."""
        return self.version or self.file.rpartition("/")[2] or hex(self.value)

    @property
    def is_function(self) -> bool:
        """Return whether it names code that can be called."""
        return self.type in FUNCTION_TYPES


class SymbolTable:
    """The symbols of a file, by name and by address."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols

    @cached_property
    def names(self) -> Mapping[str, Sequence[Symbol]]:
        """All symbols by name, global ones before local ones."""
        found: dict[str, list[Symbol]] = {}
        for symbol in self._symbols:
            found.setdefault(symbol.name, []).append(symbol)
        for symbols in found.values():
            if len(symbols) > 1:
                symbols.sort(key=lambda symbol: symbol.binding is Binding.LOCAL)
        return found

    def named(self, name: str) -> Sequence[Symbol]:
        """Return the symbols that a name means, global ones before local ones.

        A plain name means the default version, as in a linker, and each local symbol of that name.
        `name@MARK` means those with a version, a source file or an address (`Symbol.marks`).
        """
        found = self.names.get(name)
        if found is not None:
            return [one for one in found if not one.hidden] or found
        plain, _, mark = name.partition("@")
        return [one for one in self.names.get(plain, ()) if mark.removeprefix("@") in one.marks] if mark else []

    @cached_property
    def _by_address(self) -> tuple[tuple[list[int], list[Symbol]], ...]:
        """The start addresses to search, and their symbols: functions first, then all others."""
        functions = [symbol for symbol in self._symbols if symbol.is_function]
        others = [
            symbol
            for symbol in self._symbols
            if symbol.type in _PLACED and symbol.section < _NO_SECTION and not symbol.name.startswith(MARKS)
        ]
        return tuple(_sorted_by_address(symbols) for symbols in (functions, others))

    def at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that contains an address, and the offset in it.

        Functions are preferred to all other symbols.
        """
        below = []
        for starts, symbols in self._by_address:
            index = bisect_right(starts, address) - 1
            if index >= 0:
                below.append(symbols[index])
        for symbol in below:
            # A symbol without a size extends to the next symbol that has one.
            reaches = not symbol.size and not any(other.size and other.value > symbol.value for other in below)
            if address - symbol.value < symbol.size or reaches:
                return symbol, address - symbol.value
        return None

    def caller_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that contains a return address of a stack, and the offset in it.

        A function may end with a call that does not return: then the return address is the first
        one after the function.
        """
        found, before = self.at(address), self.at(address - 1)
        ends = before is not None and before[0].is_function and before[1] + 1 == before[0].size
        if before is not None and ends and not (found and found[0].size):
            return before[0], before[0].size
        return found


def matcher(glob: str | None) -> Callable[[Symbol], bool]:
    """Return the test whether a symbol has a name, `name@MARK` included; None: any has."""
    if glob is None:
        return lambda _symbol: True
    plain, _, mark = glob.partition("@")
    mark = mark.removeprefix("@")
    return lambda one: (
        fnmatchcase(one.name, glob) or (bool(mark) and mark in one.marks and fnmatchcase(one.name, plain))
    )


def told_apart(name: str, symbols: Sequence[Symbol]) -> Sequence[str]:
    """Return names for symbols of one name: `name@MARK`, which `SymbolTable.named` takes."""
    marks = [one.mark for one in symbols]
    return [f"{name}@{one.mark if marks.count(one.mark) == 1 else hex(one.value)}" for one in symbols]


def _sorted_by_address(symbols: Sequence[Symbol]) -> tuple[list[int], list[Symbol]]:
    """Return one symbol per address, by address: global symbols first, then those with a size."""
    ranked = sorted(
        symbols, key=lambda symbol: (symbol.value, symbol.binding is Binding.LOCAL, not symbol.size, symbol.hidden)
    )
    unique = {symbol.value: symbol for symbol in reversed(ranked)}
    chosen = sorted(unique.values(), key=lambda symbol: symbol.value)
    return [symbol.value for symbol in chosen], chosen


def symbol_kind(info: int) -> tuple[SymbolType, Binding]:
    """Decode the byte `st_info`; NOTYPE and LOCAL replace values that this module does not name."""
    return _TYPES.get(info & 15, SymbolType.NOTYPE), _BINDINGS.get(info >> 4, Binding.LOCAL)


def symbol_size(word: int) -> int:
    """Return the size of a symbol table's entry, for machines with words of `word` bytes."""
    return (_SYMBOL_64 if word == 8 else _SYMBOL_32).size


def symbol_entries(data: bytes, word: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (name, info, section, value, size) of the entries of a symbol table."""
    if word == 8:
        for name, info, _other, section, value, size in _SYMBOL_64.iter_unpack(data):
            yield name, info, section, value, size
    else:
        for name, value, size, info, _other, section in _SYMBOL_32.iter_unpack(data):
            yield name, info, section, value, size
