"""Symbols of ELF files: decoding of symbol tables, and lookup by name and by address.

They are unpacked here, because pyelftools makes several objects for each, and a kernel has a
hundred thousand.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

_SYMBOL_64 = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, section, value, size
_SYMBOL_32 = struct.Struct("<IIIBBH")  # Elf32_Sym: name, value, size, info, other, section
_NO_SECTION = 0xFF00  # SHN_LORESERVE
_MARKS = ("$", ".")  # assemblers' marks ($x, $d, .L1): they are not names of functions or data


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

    @property
    def is_function(self) -> bool:
        """Return whether it names code that can be called."""
        return self.type in FUNCTION_TYPES


class SymbolTable:
    """The symbols of a file, by name and by address."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols

    @cached_property
    def by_name(self) -> Mapping[str, Symbol]:
        """Symbols by name; of two with one name, the global one, else the first."""
        found: dict[str, Symbol] = {}
        for symbol in self._symbols:
            if symbol.name not in found or found[symbol.name].binding is Binding.LOCAL is not symbol.binding:
                found[symbol.name] = symbol
        return found

    @cached_property
    def _by_address(self) -> tuple[tuple[list[int], list[Symbol]], ...]:
        """The start addresses to search, and their symbols: functions first, then all others."""
        functions = [symbol for symbol in self._symbols if symbol.is_function]
        others = [
            symbol
            for symbol in self._symbols
            if symbol.type in _PLACED and symbol.section < _NO_SECTION and not symbol.name.startswith(_MARKS)
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


def _sorted_by_address(symbols: Sequence[Symbol]) -> tuple[list[int], list[Symbol]]:
    """Return one symbol per address, by address: global symbols first, then those with a size."""
    ranked = sorted(symbols, key=lambda symbol: (symbol.value, symbol.binding is Binding.LOCAL, not symbol.size))
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
