"""A kernel's names, as D programs use them: its types, its symbols, the types of its functions' arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from emu.elf import ElfError, Image
from providers.fbt.fbt import Signature
from trapline.d.scopes import Symbol
from trapline.d.types import ILP32, LP64, Composite, Enumeration, Function, Model, Type, type_name

MODULE = "kernel"


class Types(Protocol):
    """The types of an image, by name; None where there is none."""

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


@dataclass(frozen=True, slots=True)
class KernelNames:
    """Types and symbols of a kernel.  Implements `trapline.d.scopes.Foreign`."""

    image: Image
    types: Types

    @property
    def model(self) -> Model:
        """Its data model: that of the file."""
        return ILP32 if self.image.elf.elfclass == 32 else LP64

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        module, mark, plain = name.rpartition("`")
        return self.types.typedef(plain) if not mark or module == MODULE else None

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum."""
        module, mark, plain = tag.rpartition("`")
        return self.types.tag(keyword, plain) if not mark or module == MODULE else None

    def symbol(self, name: str) -> Symbol | None:
        """Return where a symbol is, and its type if that is known; `name` is "symbol" or "kernel`symbol"."""
        module, _, plain = name.rpartition("`")
        if module not in {"", MODULE}:
            return None
        try:
            found = self.image.symbol(plain)
        except ElfError:
            return None
        return Symbol(found.value, self.types.function(plain) if found.is_function else self.types.variable(plain))


@dataclass(frozen=True, slots=True)
class KernelSignatures:
    """Types of functions' arguments, as FBT asks for them.  Implements `providers.fbt.fbt.SignatureSource`."""

    types: Types

    def signature(self, module: str, function: str) -> Signature | None:
        """Return the types of a function of a module, None if they are not known."""
        found = self.types.function(function) if module == MODULE else None
        if found is None:
            return None
        return Signature(type_name(found.returns), tuple(map(type_name, found.parameters)))
