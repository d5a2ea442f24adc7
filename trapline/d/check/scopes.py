"""The names that a program may use, and their meaning; all programs of a consumer share them.

Source: FreeBSD libdtrace, the identifier tables of dtrace_hdl_t (dt_globals, dt_tls, dt_aggs) and
of a clause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from itertools import count

from emu.support.immutable import immutable
from providers.base import Attribute
from trapline.d.check.builtins import NEWEST, Version, Vocabulary, vocabulary
from trapline.d.check.typed import Node, Parameter, Translator, Variable
from trapline.d.errors import CompileError
from trapline.d.types.names import TypeNames
from trapline.d.types.rules import same
from trapline.d.types.types import Array, Composite, Enumeration, Function, Pointer, Type, resolve
from trapline.framework.base.dif import USER_VARIABLE_BASE, USER_VARIABLE_MAX
from trapline.framework.base.program import ActionKind, Scope


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


class TranslatorIndex:
    """The translators of one consumer's programs, in the order in which they were defined.

    They are found by their output and by their input: a program may define thousands, and none of
    them is compared with all others.
    """

    def __init__(self) -> None:
        self._by_output: dict[int, list[Translator]] = defaultdict(list)
        self._by_input: dict[Hashable, list[Translator]] = defaultdict(list)
        self._by_both: dict[tuple[int, Hashable], list[Translator]] = defaultdict(list)

    def add(self, translator: Translator) -> None:
        """Keep a translator."""
        output, shape = id(translator.output), _shape(translator.input.type)
        self._by_output[output].append(translator)
        self._by_input[shape].append(translator)
        self._by_both[output, shape].append(translator)

    def to(self, output: Composite) -> Sequence[Translator]:
        """Return the translators that make a struct or union."""
        return self._by_output.get(id(output), ())

    def of(self, input_: Type) -> Sequence[Translator]:
        """Return the translators that take a type."""
        return [known for known in self._by_input.get(_shape(input_), ()) if same(known.input.type, input_)]

    def between(self, input_: Type, output: Composite) -> Translator | None:
        """Return the translator from one type to the other, None if there is none."""
        alike = self._by_both.get((id(output), _shape(input_)), ())
        return next((known for known in alike if same(known.input.type, input_)), None)


def _shape(type_: Type) -> Hashable:
    """Return a key that is equal for equal types (`same`)."""
    match resolve(type_):
        case Pointer(target=target):
            return "*", _shape(target)
        case Array(element=element, count=count):
            return count, _shape(element)
        case Function(returns=returns):
            return "()", _shape(returns)
        case Composite() | Enumeration() as tagged:
            return tagged.tag or id(tagged)
        case plain:
            return plain


@dataclass(slots=True)
class Globals(TypeNames):
    """All names that outlive a program."""

    version: InitVar[Version] = NEWEST
    words: Vocabulary = field(init=False)
    """The names that every program can use."""
    variables: dict[tuple[Scope, str], Variable] = field(default_factory=dict)
    aggregations: dict[str, Aggregation] = field(default_factory=dict)
    inlines: dict[str, Inline] = field(default_factory=dict)
    translators: TranslatorIndex = field(default_factory=TranslatorIndex)
    providers: dict[str, dict[str, DeclaredProbe]] = field(default_factory=dict)
    """Probes of provider blocks, by provider and name."""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    """Stability that pragmas give to names."""
    printed: dict[str, Type] = field(default_factory=dict)
    """Types of the data of print(), by their names in its records."""
    _next: dict[Scope, int] = field(default_factory=lambda: dict.fromkeys(Scope, USER_VARIABLE_BASE))

    def __post_init__(self, version: Version) -> None:
        TypeNames.__post_init__(self)
        self.use_version(version)

    def use_version(self, version: Version) -> None:
        """Know the built-in names of a version of the language, and no others."""
        self.words = vocabulary(self.model.model, version)

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
