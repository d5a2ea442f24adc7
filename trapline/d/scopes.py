"""The names that a program may use, and their meaning; all programs of a consumer share them.

Source: FreeBSD libdtrace, the identifier tables of dtrace_hdl_t (dt_globals, dt_tls, dt_aggs) and
of a clause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol

from emu.immutable import immutable
from providers.base import Attribute
from trapline.d.builtins import Vocabulary, vocabulary
from trapline.d.data_models import LP64, Model, base_type
from trapline.d.errors import CompileError
from trapline.d.translator_index import TranslatorIndex
from trapline.d.type_rules import same
from trapline.d.typed import Node, Parameter, Variable
from trapline.d.types import Composite, Enumeration, Type
from trapline.framework.dif import USER_VARIABLE_BASE, USER_VARIABLE_MAX
from trapline.framework.program import ActionKind, Scope

# Containers of the types that the programs define (D) and that every program has (C), by libdtrace's names.
CONTAINERS = frozenset({"C", "D"})
# The module that is the kernel itself, and its names on illumos and Linux, whose scripts should run here.
KERNEL = "kernel"
KERNEL_MODULES = frozenset({"unix", "genunix", "vmlinux"})
# Keyword before `->` -> the scope it means.
SCOPES = {"self": Scope.THREAD, "this": Scope.LOCAL}


@dataclass(slots=True, eq=False)
class Aggregation:
    """An aggregation; its first assignment determines its function and keys."""

    name: str
    id: int
    function: ActionKind | None = None
    argument: int = 0
    """Encoded parameters of lquantize() and llquantize()."""
    keys: tuple[Type, ...] = ()


@immutable
class Inline:
    """`inline type name[parameters] = body`."""

    name: str
    type: Type
    parameters: tuple[Parameter, ...] | None
    body: Node


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
        """Its data model."""
        ...

    def has_module(self, name: str) -> bool:
        """Return whether a module is loaded; the kernel itself is one."""
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


@immutable
class DeclaredProbe:
    """A probe of a provider block."""

    name: str
    native: tuple[Type, ...]
    """Types of the arguments as the program passes them."""
    shown: tuple[Type, ...]
    """Types of args[]."""
    mapping: tuple[int, ...]
    """The program's argument for each of args[]."""


@dataclass(slots=True)
class Globals:
    """All names that outlive a program."""

    words: Vocabulary = field(default_factory=vocabulary)
    """The names that every program can use."""
    variables: dict[tuple[Scope, str], Variable] = field(default_factory=dict)
    aggregations: dict[str, Aggregation] = field(default_factory=dict)
    inlines: dict[str, Inline] = field(default_factory=dict)
    typedefs: dict[str, Type] = field(default_factory=dict)
    tags: dict[tuple[str, str], Composite | Enumeration] = field(default_factory=dict)
    """Structs, unions and enums, each with a name space of its own: by keyword and tag."""
    enumerators: dict[str, tuple[int, Enumeration]] = field(default_factory=dict)
    translators: TranslatorIndex = field(default_factory=TranslatorIndex)
    providers: dict[str, dict[str, DeclaredProbe]] = field(default_factory=dict)
    """Probes of provider blocks, by provider and name."""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    """Stability that pragmas give to names."""
    foreign: Foreign = field(default_factory=NoNames)
    printed: dict[str, Type] = field(default_factory=dict)
    """Types of the data of print(), by their names in its records."""
    _next: dict[Scope, int] = field(default_factory=lambda: dict.fromkeys(Scope, USER_VARIABLE_BASE))

    def __post_init__(self) -> None:
        self.typedefs = {**self.model.typedefs, **self.typedefs}

    @property
    def model(self) -> Model:
        """The data model of the programs."""
        return self.words.model

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
        return (Scope.GLOBAL, name) in self.variables or any(name in table for table in self._named_values())

    def defined(self) -> frozenset[str]:
        """Return everything that has a name, types included."""
        variables = {known for scope, known in self.variables if scope is Scope.GLOBAL}
        tables = (
            variables,
            *self._named_values(),
            self.typedefs,
            self.aggregations,
            {tag for _keyword, tag in self.tags},
        )
        return frozenset(name for table in tables for name in table)

    def _named_values(self) -> Iterator[Collection[str]]:
        words = self.words
        yield from (self.inlines, self.enumerators, words.variables, words.constants, words.subroutines)
        yield from (words.actions, words.aggregating)

    def variable_names(self, scope: Scope) -> list[str]:
        """List the names that can be read in a scope."""
        own = [name for known, name in self.variables if known is scope]
        return [*own, *self.words.variables, *self.inlines] if scope is Scope.GLOBAL else own

    def declare(self, scope: Scope, name: str, type_: Type, keys: tuple[Type, ...] | None = None) -> Variable:
        """Add a variable.  Raises `CompileError` D_ID_OFLOW."""
        number = self._next[scope]
        if number > USER_VARIABLE_MAX:
            raise CompileError("D_ID_OFLOW", f"cannot define {name}: there are too many variables of its class")
        self._next[scope] = number + 1
        variable = self.variables[scope, name] = Variable(name, number, scope, type_, keys)
        return variable

    def print_as(self, type_: Type) -> str:
        """Return a name for a type that print() records: its own, or a numbered one."""
        name = str(type_)
        for number in count(2):
            if same(self.printed.setdefault(name, type_), type_):
                return name
            name = f"{type_} #{number}"
        raise AssertionError

    def aggregation(self, name: str) -> Aggregation:
        """Return an aggregation, a new one if it was not named before."""
        known = self.aggregations.get(name)
        if known is None:
            known = self.aggregations[name] = Aggregation(name, len(self.aggregations) + 1)
        return known
