"""The linker: lays sections out, resolves symbols, relocates, and makes one file of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final, NamedTuple

from emu.elf.image import Image
from emu.elf.link.layout import LinkLayout
from emu.elf.link.object_file import ABSOLUTE, COMMON, UNDEFINED, InputSymbol, ObjectFile
from emu.elf.link.relocate import Relocator, Resolved
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import EXECUTABLE, OutputSymbol, elf_file
from emu.isa.relocations import relocations_of
from emu.support.immutable import immutable

# The default address: in reach of absolute addresses of 32 bits, signed or not, on every ISA.
BASE: Final = 0x2000_0000
_DATA_ALIGNMENT: Final = 16


@immutable
class Externs:
    """The definitions that the linker adds for symbols that no object defines."""

    functions: Sequence[str] = ()
    """The names of functions: each has one return instruction, which may be hooked."""
    data: Mapping[str, int] = field(default_factory=dict)
    """The size in bytes of each variable; all are zero."""
    body: bytes = b""
    """The return instruction."""

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self.functions


class UndefinedError(Exception):
    """Symbols that neither an object nor `Externs` defines.

    `missing` has the names, each with the objects that use it.
    """

    def __init__(self, missing: Mapping[str, Sequence[str]]) -> None:
        super().__init__(f"{len(missing)} undefined symbols: {', '.join(missing)}")
        self.missing = missing


class Linked(NamedTuple):
    """The result of linking."""

    image: Image
    externs: Mapping[str, int]
    """The addresses of the functions and variables of `Externs` that are used."""
    layout: LinkLayout
    """The addresses of all parts."""

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.layout.end


def link(objects: Sequence[ObjectFile], externs: Externs | None = None, base: int = BASE) -> Linked:
    """Link object files of one ISA.

    Raises `ElfError` for a file that cannot be linked, and `UndefinedError` with all the symbols
    that are missing.
    """
    return _Link(objects, externs or Externs(), base).run()


class _Link:
    """One run of the linker."""

    def __init__(self, objects: Sequence[ObjectFile], externs: Externs, base: int) -> None:
        self._objects = objects
        self._externs = externs
        self._isa = objects[0].isa
        for one in objects:
            if one.isa is not self._isa:
                raise one.error(f"made for {one.isa.name}, but {objects[0].name} for {self._isa.name}")
        self._layout = LinkLayout(objects, base)
        self._owners = self._definitions()
        self._defined: dict[str, Resolved] = {}

    def run(self) -> Linked:
        """Link the objects.  Raises `ElfError` and `UndefinedError`."""
        commons = self._commons()
        self._offer(self._undefined(commons), commons)
        self._layout.close()
        self._resolve_all()
        relocator = Relocator(self._isa, self._layout)
        for number, one in enumerate(self._objects):
            relocator.relocate(number, one, self._values(number, one))
        relocator.fill_entries()
        content = elf_file(self._isa, EXECUTABLE, [*self._layout.outputs()], self._symbols())
        image = Image(self._path, content=content)
        used = {name: part.address for name, part in self._layout.added.items() if name in self._externs}
        return Linked(image, used, self._layout)

    @property
    def _path(self) -> Path:
        return Path(",".join(str(one.path) for one in self._objects))

    # -- symbols

    def _definitions(self) -> dict[str, tuple[int, InputSymbol]]:
        """Return the global definitions, each with its object; a weak one yields to another.

        Raises `ElfError` if two are not weak.
        """
        owners: dict[str, tuple[int, InputSymbol]] = {}
        for number, one in enumerate(self._objects):
            for symbol in one.symbols:
                if symbol.binding is Binding.LOCAL or symbol.section in {UNDEFINED, COMMON}:
                    continue
                if symbol.type is SymbolType.TLS:
                    raise one.error(f"'{symbol.name}' is thread-local, which is not supported")
                if symbol.section != ABSOLUTE and not self._layout.kept(number, symbol.section):
                    continue
                known = owners.get(symbol.name)
                if known is None or known[1].binding is Binding.WEAK is not symbol.binding:
                    owners[symbol.name] = number, symbol
                elif symbol.binding is not Binding.WEAK:
                    other = self._objects[known[0]]
                    raise one.error(f"'{symbol.name}' is defined in {other.name}, too")
        return owners

    def _undefined(self, commons: Mapping[str, object]) -> list[str]:
        """Return the undefined symbols.  Raises `UndefinedError` if a strong one is not offered."""
        wanted: dict[str, list[str]] = {}
        weak: set[str] = set()
        others = {"", relocations_of(self._isa).table_symbol, *self._owners, *commons}
        for one in self._objects:
            for index in sorted(one.used):
                symbol = one.symbols[index]
                if symbol.section == UNDEFINED and symbol.name not in others:
                    wanted.setdefault(symbol.name, []).append(one.name)
                    weak |= {symbol.name} if symbol.binding is Binding.WEAK else set()
        missing = {name: users for name, users in wanted.items() if name not in self._externs and name not in weak}
        if missing:
            raise UndefinedError(missing)
        return list(wanted)

    def _commons(self) -> dict[str, InputSymbol]:
        """Return the common symbols: the largest of each name, at the largest alignment."""
        found: dict[str, InputSymbol] = {}
        for one in self._objects:
            for symbol in one.symbols:
                if symbol.section != COMMON or symbol.name in self._owners:
                    continue
                known = found.get(symbol.name, symbol)
                larger = max(known, symbol, key=lambda each: each.size)
                found[symbol.name] = larger._replace(value=max(known.value, symbol.value))
        return found

    def _offer(self, wanted: Sequence[str], commons: Mapping[str, InputSymbol]) -> None:
        """Add the externs that are used, and the common symbols, to the layout."""
        functions, data = self._externs.functions, self._externs.data
        for name in wanted:
            if name in data:
                self._layout.add_data(name, data[name], _DATA_ALIGNMENT)
            elif name in functions:
                self._layout.add_function(name, self._externs.body)
        for name, symbol in commons.items():
            self._layout.add_data(name, max(symbol.size, data.get(name, 0)), max(1, symbol.value))

    def _resolve_all(self) -> None:
        """Define the global symbols: everything has its address now."""
        for name, part in self._layout.added.items():
            self._defined[name] = Resolved(part.address, part.type, part.size)
        for name, (number, symbol) in self._owners.items():
            self._defined[name] = self._resolved(number, symbol)

    def _resolved(self, number: int, symbol: InputSymbol) -> Resolved:
        if symbol.section == ABSOLUTE:
            return Resolved(symbol.value, symbol.type, symbol.size)
        part = self._layout.part(number, symbol.section)
        return Resolved(part.address + symbol.value if part else 0, symbol.type, symbol.size)

    def _values(self, number: int, one: ObjectFile) -> list[Resolved]:
        """Return the values of an object's symbols, by number."""
        found = []
        table = relocations_of(self._isa).table_symbol
        for symbol in one.symbols:
            local = symbol.binding is Binding.LOCAL
            if not local and symbol.name in self._defined:
                found.append(self._defined[symbol.name])
            elif symbol.name == table and symbol.section == UNDEFINED:
                found.append(Resolved(self._layout.entries.address, SymbolType.OBJECT, 0))
            elif symbol.section in {UNDEFINED, COMMON}:
                found.append(Resolved(0, symbol.type, 0))
            else:
                found.append(self._resolved(number, symbol))
        return found

    def _symbols(self) -> list[OutputSymbol]:
        """Return the symbols of the result: the local ones of each object, then the global ones."""
        found = []
        for number, one in enumerate(self._objects):
            for symbol in one.symbols:
                named = symbol.name and symbol.type not in {SymbolType.SECTION, SymbolType.FILE}
                if symbol.binding is Binding.LOCAL and named and symbol.section not in {UNDEFINED, ABSOLUTE, COMMON}:
                    resolved = self._resolved(number, symbol)
                    if resolved.value:
                        found.append(OutputSymbol(symbol.name, resolved.value, symbol.size, symbol.type, Binding.LOCAL))
        return [
            *found,
            *(
                OutputSymbol(name, made.value, made.size, made.type, Binding.GLOBAL)
                for name, made in self._defined.items()
            ),
        ]
