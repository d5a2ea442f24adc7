"""The names of the process that is traced: "``symbol" and "object``symbol".

Source: FreeBSD libdtrace dt_parser.c (dt_xcook_ident()).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.elf.symbols import told_apart
from emu.support.immutable import immutable
from trapline.d.types.names import Foreign, Symbol

if TYPE_CHECKING:
    from emu.guest.objects import LoadedObject
    from trapline.d.types.data_models import Model
    from trapline.d.types.types import Composite, Enumeration, Type
    from trapline.types.kernel import Types

_MARK: Final = "``"


@immutable
class ProcessNames:
    """A system's names, and the symbols of its process.

    Implements `trapline.d.types.names.Foreign`.

    `objects` returns the objects that the process has loaded, the program first; it is called when
    a D program names such a symbol.  `report` is told, once, which of several symbols of one name
    was taken.
    """

    system: Foreign
    objects: Callable[[], Sequence[LoadedObject]]
    types: Callable[[Image], Types]
    report: Callable[[str], object] = lambda _text: None
    _known: dict[str, Types] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    @property
    def model(self) -> Model:
        """The system's data model."""
        return self.system.model

    def has_module(self, name: str) -> bool:
        """Return whether the system has loaded a module."""
        return self.system.has_module(name)

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef of the system's names."""
        return self.system.typedef(name)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum of the system's."""
        return self.system.tag(keyword, tag)

    def symbol(self, name: str) -> Symbol | None:
        """Return a symbol: with two back-quotes one of the process, else one of the system."""
        object_, mark, plain = name.rpartition(_MARK)
        if not mark:
            return self.system.symbol(name)
        for loaded in self.objects():
            # A name in D has no dots: libc is libc.so.7.
            if object_ in {"", loaded.name, loaded.name.partition(".")[0]}:
                try:
                    found = loaded.image.symbol(plain)
                except ElfError:
                    continue
                self._tell(loaded, plain)
                types = self._types(loaded)
                type_ = types.function(plain) if found.is_function else types.variable(plain)
                return Symbol(found.value + loaded.bias, type_)
        return None

    def _tell(self, loaded: LoadedObject, name: str) -> None:
        found = loaded.image.named(name)
        if len(found) < 2 or name in self._told:
            return
        self._told.add(name)
        taken, *others = told_apart(name, found)
        self.report(f"{loaded.name} has {len(found)} symbols '{name}': {taken} is taken, not {', '.join(others)}")

    def _types(self, loaded: LoadedObject) -> Types:
        if loaded.path not in self._known:
            self._known[loaded.path] = self.types(loaded.image)
        return self._known[loaded.path]
