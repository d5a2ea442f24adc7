"""A kernel's names for D programs: types, symbols, types of arguments.

Its loaded modules are part of it, each with the types of its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from emu.elf.file import ElfError
from emu.elf.image import Image, image_of_content
from emu.elf.symbols import Symbol as ElfSymbol
from emu.guest.modules import Module
from emu.isa.base import Isa
from emu.support.immutable import immutable
from providers.fbt.exclusions import module_name
from providers.fbt.fbt import Signature
from trapline.d.types.data_models import ILP32, LP64, Model
from trapline.d.types.names import Symbol
from trapline.d.types.types import Composite, Enumeration, Function, Type, type_name

MODULE = "kernel"


class Types(Protocol):
    """The types of an image, by name; None if there is none."""

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        ...

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return the struct, union or enum (`keyword`) of a tag."""
        ...

    def variable(self, name: str) -> Type | None:
        """Return the type of a variable."""
        ...

    def function(self, name: str) -> Function | None:
        """Return the type of a function."""
        ...


class ModuleTypes:
    """The modules that a kernel has loaded, and the types of each: those of its file.

    `loaded` yields the modules; `read` returns the content of a module's file by its name, None if
    it is not known.
    """

    def __init__(
        self,
        isa: Isa,
        loaded: Callable[[], Iterable[Module]],
        read: Callable[[str], bytes | None],
        types: Callable[[Image], Types],
    ) -> None:
        self._isa = isa
        self._loaded = loaded
        self._read = read
        self._make = types
        self._known: dict[str, Types] = {}

    def of(self, module: str) -> Types | None:
        """Return the types of a module that is loaded.

        None: it is not, or its file is not known.
        """
        return next((types for _, types in self.named(module)), None)

    def has(self, module: str) -> bool:
        """Return whether a module is loaded, with types or without."""
        return any(module == module_name(one.name) for one in self._loaded())

    def named(self, module: str = "") -> Iterator[tuple[Module, Types]]:
        """Yield the modules of a name, or all that are loaded, with their types."""
        for one in self._loaded():
            if module in {"", module_name(one.name)}:
                types = self._types(one.name)
                if types is not None:
                    yield one, types

    def _types(self, file: str) -> Types | None:
        if file not in self._known:
            content = self._read(file)
            if content is None:
                return None
            try:
                self._known[file] = self._make(image_of_content(file, content, self._isa))
            except ElfError:
                return None
        return self._known[file]


@immutable
class KernelNames:
    """Types and symbols of a kernel and of its modules.

    Implements `trapline.d.types.names.Foreign`.

    "module`name" means the module's own; a plain name the kernel's, or that of the first module
    that has it.
    """

    image: Image
    types: Types
    modules: ModuleTypes | None = None

    @property
    def model(self) -> Model:
        """Its data model: that of the file."""
        return ILP32 if self.image.isa.word == 4 else LP64

    def _sources(self, module: str) -> Iterator[Types]:
        if module in {"", MODULE}:
            yield self.types
        if self.modules is not None and module != MODULE:
            yield from (types for _, types in self.modules.named(module))

    def has_module(self, name: str) -> bool:
        """Return whether a module is loaded; the kernel itself is one."""
        return name == MODULE or (self.modules is not None and self.modules.has(name))

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        module, _, plain = name.rpartition("`")
        found = (types.typedef(plain) for types in self._sources(module))
        return next((type_ for type_ in found if type_ is not None), None)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum."""
        module, _, plain = tag.rpartition("`")
        found = (types.tag(keyword, plain) for types in self._sources(module))
        return next((type_ for type_ in found if type_ is not None), None)

    def symbol(self, name: str) -> Symbol | None:
        """Return the address of a symbol, and its type if that is known.

        `name` is "symbol" or "module`symbol".
        """
        module, _, plain = name.rpartition("`")
        if module in {"", MODULE}:
            try:
                found = self.image.symbol(plain)
            except ElfError:
                pass
            else:
                return _typed(found, self.types)
        if self.modules is None or module == MODULE:
            return None
        for loaded, types in self.modules.named(module):
            for candidate in loaded.symbols:
                if candidate.name == plain and candidate.value:
                    return _typed(candidate, types)
        return None


def _typed(symbol: ElfSymbol, types: Types) -> Symbol:
    return Symbol(symbol.value, types.function(symbol.name) if symbol.is_function else types.variable(symbol.name))


@immutable
class KernelSignatures:
    """Types of functions' arguments, for FBT.

    Implements `providers.fbt.fbt.SignatureSource`.
    """

    types: Types
    modules: ModuleTypes | None = None

    def signature(self, module: str, function: str) -> Signature | None:
        """Return the types of a function of a module, None if they are not known."""
        source = self.types if module == MODULE else self.modules.of(module) if self.modules is not None else None
        found = None if source is None else source.function(function)
        if found is None:
            return None
        return Signature(type_name(found.returns), tuple(map(type_name, found.parameters)))
