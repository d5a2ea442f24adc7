"""The names of types: the programs' own, and those of the traced system.

Source: FreeBSD libdtrace dt_module.c (dtrace_lookup_by_type(), dtrace_lookup_by_name()), dt_decl.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from trapline.d.errors import CompileError
from trapline.d.types.data_models import LP64, Model, base_type
from trapline.d.types.types import Composite, Enumeration, Type

# Containers of the types that the programs define (D) and that every program has (C), by libdtrace's names.
CONTAINERS = frozenset({"C", "D"})
# The module that is the kernel itself, and its names on illumos and Linux, whose scripts should run here.
KERNEL = "kernel"
KERNEL_MODULES = frozenset({"unix", "genunix", "vmlinux"})


def _in_kernel(name: str) -> str:
    """Return a name with `kernel` for any other name of that module before its back-quote."""
    module, mark, plain = name.partition("`")
    return f"{KERNEL}{mark}{plain}" if mark and module in KERNEL_MODULES else name


class Symbol(NamedTuple):
    """A symbol of the traced system."""

    address: int
    type: Type | None
    """None: there is no type information for it."""


class Foreign(Protocol):
    """The names of the traced system; a module may stand before them, ``kernel`name``."""

    @property
    def model(self) -> Model:
        """The data model of the traced system."""
        ...

    def has_module(self, name: str) -> bool:
        """Return whether a module is loaded; `kernel` always is."""
        ...

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        ...

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum."""
        ...

    def symbol(self, name: str) -> Symbol | None:
        """Return a symbol."""
        ...


class NoNames:
    """A traced system without known names.  Implements `Foreign`."""

    model = LP64

    def has_module(self, name: str) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def typedef(self, name: str) -> Type | None:  # noqa: ARG002
        """Return None."""
        return None

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:  # noqa: ARG002
        """Return None."""
        return None

    def symbol(self, name: str) -> Symbol | None:  # noqa: ARG002
        """Return None."""
        return None


@dataclass(slots=True)
class TypeNames:
    """The names of types, and of the enumerators that come with them."""

    model: Model = LP64
    """The data model of the programs."""
    typedefs: dict[str, Type] = field(default_factory=dict)
    tags: dict[tuple[str, str], Composite | Enumeration] = field(default_factory=dict)
    """Structs, unions and enums, each with a name space of its own: by keyword and tag."""
    enumerators: dict[str, tuple[int, Enumeration]] = field(default_factory=dict)
    foreign: Foreign = field(default_factory=NoNames)
    """The names of the traced system."""

    def __post_init__(self) -> None:
        self.typedefs = {**self.model.typedefs, **self.typedefs}

    @property
    def long_size(self) -> int:
        """Bytes of a long."""
        return self.model.long.size

    def is_type(self, name: str) -> bool:
        """Return whether a name is that of a type."""
        return self.typedef(name) is not None

    def typedef(self, name: str) -> Type | None:
        """Return the type of a name: the program's own, or the traced system's.

        Before a back-quote stands a module, or one of the programs' own containers: ``D`my_t``,
        ``C`uint_t``, ``D`int``.
        """
        module, mark, plain = name.partition("`")
        if mark and module in CONTAINERS:
            return self.typedefs.get(plain) or base_type((plain,), self.model)
        return self.typedefs.get(name) or (self.foreign.typedef(_in_kernel(name)) if self._types_fit else None)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum, of the programs or of the traced system, or None."""
        module, mark, plain = tag.partition("`")
        if mark and module in CONTAINERS:
            return self.tags.get((keyword, plain))
        return self.tags.get((keyword, tag)) or self.foreign_tag(keyword, tag)

    def foreign_tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum of the traced system."""
        return self.foreign.tag(keyword, _in_kernel(tag)) if self._types_fit else None

    def is_complete(self, keyword: str, tag: str) -> bool:
        """Return whether the programs define a struct, union or enum."""
        known = self.tags.get((keyword, tag))
        return (known.enumerators if isinstance(known, Enumeration) else known and known.members) is not None

    def has_module(self, name: str) -> bool:
        """Return whether the traced system has loaded a module whose types the programs can use."""
        return self._types_fit and self.foreign.has_module(KERNEL if name in KERNEL_MODULES else name)

    def foreign_symbol(self, name: str) -> Symbol | None:
        """Return a symbol of the traced system.  Raises `CompileError` D_SYM_MODEL."""
        found = self.foreign.symbol(_in_kernel(name))
        if found is not None and not self._types_fit:
            system, own = (model.model.name for model in (self.foreign.model, self.model))
            raise CompileError("D_SYM_MODEL", f"cannot use the {system} symbol {name} in a program that is {own}")
        return found

    @property
    def _types_fit(self) -> bool:
        """Whether the traced system's data model is the programs' own."""
        return self.foreign.model is self.model

    def is_defined(self, name: str) -> bool:
        """Return whether a name means anything but a type."""
        return name in self.enumerators
