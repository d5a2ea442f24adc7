"""The files that the kernel guest's linker has loaded, and their symbols.

The kernel keeps a `struct linker_file` for each, with a symbol table of its own whose values are
addresses (testbins/kernel/sys/linker.h); the offsets of its members are in `kernel_assym[]`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.elf.image import Image
from emu.elf.symbols import Binding, Symbol, SymbolType, symbol_entries, symbol_size
from emu.engine.engine import Engine
from emu.guest.kernel.introspection import offsets, text_at
from emu.guest.modules import Module

_NAME: Final = 32
# Bytes of a symbol's name that are read: an object that the kernel links may be damaged.
_SYMBOL_NAME: Final = 4096
_RESERVED: Final = 0xFF00  # SHN_LORESERVE
# The beginnings of the names of compilers' labels.
_MARKS: Final = "$."
_TYPES: Final = {int(kind): kind for kind in SymbolType}
_BINDINGS: Final = {int(binding): binding for binding in Binding}


class _Loaded(NamedTuple):
    """A loaded file: its address, and its symbols by address."""

    address: int
    end: int
    module: Module
    by_address: tuple[tuple[int, Symbol], ...]


class Modules:
    """The files that were loaded since the start; the kernel itself is not among them.

    `read(address, size)` returns code without patches.
    """

    def __init__(self, engine: Engine, image: Image, read: Callable[[int, int], bytes]) -> None:
        self._engine = engine
        self._word = image.isa.word
        self._offset = offsets(image)
        self._read = read
        self._loaded: dict[int, _Loaded] = {}

    def __iter__(self) -> Iterator[Module]:
        return (loaded.module for loaded in self._loaded.values())

    def _field(self, file: int, name: str, size: int | None = None) -> int:
        return self._engine.load(file + self._offset[name], size or self._word)

    def _filename(self, file: int) -> str:
        return text_at(self._engine, file + self._offset["LF_FILENAME"], _NAME)

    def add(self, file: int) -> Module:
        """Add the file whose `struct linker_file` is at an address."""
        symbols = tuple(self._symbols(file))
        count = self._field(file, "LF_NDEPS", 4)
        depends = self._offset["LF_DEPS"]
        dependencies = [self._engine.load(file + depends + self._word * index, self._word) for index in range(count)]
        module = Module(
            self._filename(file),
            symbols,
            self._read,
            tuple(map(self._filename, dependencies)),
            self._field(file, "LF_LOADCNT", 4),
        )
        address = self._field(file, "LF_ADDRESS")
        named = (symbol for symbol in symbols if symbol.name and 0 < symbol.section < _RESERVED)
        named = (symbol for symbol in named if symbol.name[0] not in _MARKS)
        by_address = tuple(sorted((symbol.value, symbol) for symbol in named))
        self._loaded[file] = _Loaded(address, address + self._field(file, "LF_SIZE"), module, by_address)
        return module

    def _symbols(self, file: int) -> Iterator[Symbol]:
        table, count = self._field(file, "LF_SYMTAB"), self._field(file, "LF_NSYMS")
        strings = self._field(file, "LF_STRTAB")
        entries = self._engine.read(table, count * symbol_size(self._word))
        for name, info, section, value, size in symbol_entries(entries, self._word):
            kind = _TYPES.get(info & 15, SymbolType.NOTYPE)
            binding = _BINDINGS.get(info >> 4, Binding.LOCAL)
            defined = value if section and kind is not SymbolType.FILE else 0
            yield Symbol(self._text(strings + name), defined, size, kind, binding, section)

    def _text(self, address: int) -> str:
        return text_at(self._engine, address, _SYMBOL_NAME)

    def get(self, file: int) -> Module | None:
        """Return the module of a file that was added."""
        loaded = self._loaded.get(file)
        return None if loaded is None else loaded.module

    def remove(self, file: int) -> None:
        """Forget a file."""
        self._loaded.pop(file, None)

    def locate(self, address: int) -> tuple[str, str, int] | None:
        """Return (module, symbol, offset) of an address, with the symbol "" if there is none.

        None: the address is not in a module.
        """
        for loaded in self._loaded.values():
            if loaded.address <= address < loaded.end:
                name = loaded.module.name.removesuffix(".ko")
                index = bisect_right(loaded.by_address, address, key=lambda entry: entry[0]) - 1
                if index < 0:
                    return name, "", address - loaded.address
                value, symbol = loaded.by_address[index]
                return name, symbol.name, address - value
        return None
