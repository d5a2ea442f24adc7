"""The syntax tree: the structure of the text, before names and types are known.

`line` is the line of the node's characteristic token: an operator, a name, the first word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from trapline.d.types import Integer


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the text."""

    line: int


# -- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer or character literal."""

    value: int
    type: Integer


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string literal."""

    value: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name, with its back-quotes if it names a symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Scoped(Node):
    """`self->name` or `this->name`."""

    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class Aggregation(Node):
    """`@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(arguments)`."""

    function: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`base[keys]`."""

    base: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MemberAccess(Node):
    """`base.name`, or with `arrow` `base->name`."""

    base: Expression
    name: str
    arrow: bool


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    """`operator operand`; sizeof and stringof included."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Step(Node):
    """`operand++` or `operand--`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`left operator right`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`target operator value`, where the operator is `=` or one like `+=`."""

    operator: str
    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`test ? then : otherwise`."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Comma(Node):
    """`left, right`."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """`(type) operand`."""

    type: TypeName
    operand: Expression


@dataclass(frozen=True, slots=True)
class SizeOfType(Node):
    """`sizeof (type)`."""

    type: TypeName


@dataclass(frozen=True, slots=True)
class OffsetOf(Node):
    """`offsetof(type, member)`."""

    type: TypeName
    member: str


@dataclass(frozen=True, slots=True)
class Translate(Node):
    """`xlate <type> (operand)`."""

    type: TypeName
    operand: Expression


Expression: TypeAlias = (
    Number
    | Text
    | Name
    | Scoped
    | Aggregation
    | Call
    | Index
    | MemberAccess
    | Prefix
    | Step
    | Binary
    | Assign
    | Conditional
    | Comma
    | Cast
    | SizeOfType
    | OffsetOf
    | Translate
)


# -- declarations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A keyword among specifiers: `int`, `const`, `typedef`, `self` ..."""

    word: str


@dataclass(frozen=True, slots=True)
class NamedType(Node):
    """The name of a typedef among specifiers."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A declarator of a member: `bits` is the width of a bit-field; an unnamed one has None."""

    declarator: Declarator | None
    bits: Expression | None


@dataclass(frozen=True, slots=True)
class MemberDeclaration(Node):
    """A line of a struct or union."""

    specifiers: Specifiers
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class CompositeSpecifier(Node):
    """`struct tag { members }`; `members` is None for a mere reference."""

    keyword: str
    tag: str
    members: tuple[MemberDeclaration, ...] | None


@dataclass(frozen=True, slots=True)
class Enumerator(Node):
    """`name = value` in an enum."""

    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class EnumSpecifier(Node):
    """`enum tag { enumerators }`; `enumerators` is None for a mere reference."""

    tag: str
    enumerators: tuple[Enumerator, ...] | None


@dataclass(frozen=True, slots=True)
class Specifiers(Node):
    """The words a declaration starts with."""

    words: tuple[Word | NamedType | CompositeSpecifier | EnumSpecifier, ...]


@dataclass(frozen=True, slots=True)
class PointerPart(Node):
    """`*`, with the qualifiers after it."""

    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrayPart(Node):
    """`[size]`, `[keys]` or `[]`."""

    size: Expression | None
    keys: tuple[Parameter, ...] | None
    varargs: bool = False


@dataclass(frozen=True, slots=True)
class FunctionPart(Node):
    """`(parameters)`."""

    parameters: tuple[Parameter, ...]
    varargs: bool


@dataclass(frozen=True, slots=True)
class Declarator(Node):
    """A name and its type, from the name outwards: `*a[3]` is an array of 3, then a pointer."""

    name: str
    """Empty for an abstract declarator."""
    parts: tuple[PointerPart | ArrayPart | FunctionPart, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A parameter, or a key of an associative array."""

    specifiers: Specifiers
    declarator: Declarator | None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as in a cast."""

    specifiers: Specifiers
    declarator: Declarator | None


# -- top-level items -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """`specifiers declarators;`."""

    specifiers: Specifiers
    declarators: tuple[Declarator, ...]


@dataclass(frozen=True, slots=True)
class Inline(Node):
    """`inline type name = value;`."""

    specifiers: Specifiers
    declarator: Declarator | None
    value: Expression


@dataclass(frozen=True, slots=True)
class TranslatorMember(Node):
    """`name = value;` in a translator."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Translator(Node):
    """`translator output < input name > { members };`."""

    output: TypeName
    specifiers: Specifiers
    declarator: Declarator
    members: tuple[TranslatorMember, ...]


@dataclass(frozen=True, slots=True)
class ProbeDeclaration(Node):
    """`probe name(parameters) : (translated);`."""

    name: str
    parameters: FunctionPart
    translated: FunctionPart | None


@dataclass(frozen=True, slots=True)
class Provider(Node):
    """`provider name { probes };`."""

    name: str
    probes: tuple[ProbeDeclaration, ...]


@dataclass(frozen=True, slots=True)
class ProbeText(Node):
    """A probe description as written, macros replaced."""

    text: str


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if (test) then else otherwise`."""

    test: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = Expression | If


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """`descriptions / predicate / { body }`; `body` is None where there are no braces."""

    probes: tuple[ProbeText, ...]
    predicate: Expression | None
    body: tuple[Statement, ...] | None


Item: TypeAlias = Clause | Declaration | Inline | Translator | Provider
