"""The syntax tree: the structure of the text, before names and types are known.

`line` is the line of the node's characteristic token: an operator, a name, the first word.  The
functions at the end walk over trees without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, TypeAlias

from emu.support.immutable import immutable
from trapline.d.errors import CompileError


@immutable
class Node:
    """A part of the text, with the line that it is in."""

    line: int


# -- expressions -----------------------------------------------------------------------------------------------------


@immutable
class Number(Node):
    """An integer or character literal."""

    value: int
    type: str
    """The words of its type in C, such as `unsigned long`."""


@immutable
class Text(Node):
    """A string literal."""

    value: str


@immutable
class Name(Node):
    """A name, with its back-quotes if it names a symbol."""

    name: str


@immutable
class Scoped(Node):
    """`self->name` or `this->name`."""

    scope: str
    name: str


@immutable
class Aggregation(Node):
    """`@name`."""

    name: str


@immutable
class Call(Node):
    """`function(arguments)`."""

    function: Expression
    arguments: tuple[Expression, ...]


@immutable
class Index(Node):
    """`base[keys]`."""

    base: Expression
    keys: tuple[Expression, ...]


@immutable
class MemberAccess(Node):
    """`base.name`, or with `arrow` `base->name`."""

    base: Expression
    name: str
    arrow: bool


@immutable
class Prefix(Node):
    """`operator operand`; sizeof and stringof included."""

    operator: str
    operand: Expression


@immutable
class Step(Node):
    """`operand++` or `operand--`."""

    operator: str
    operand: Expression


@immutable
class Binary(Node):
    """`left operator right`."""

    operator: str
    left: Expression
    right: Expression


@immutable
class Assign(Node):
    """`target operator value`, where the operator is `=` or one like `+=`."""

    operator: str
    target: Expression
    value: Expression


@immutable
class Conditional(Node):
    """`test ? then : otherwise`."""

    test: Expression
    then: Expression
    otherwise: Expression


@immutable
class Comma(Node):
    """`left, right`."""

    left: Expression
    right: Expression


@immutable
class Cast(Node):
    """`(type) operand`."""

    type: TypeName
    operand: Expression


@immutable
class SizeOfType(Node):
    """`sizeof (type)`."""

    type: TypeName


@immutable
class OffsetOf(Node):
    """`offsetof(type, member)`."""

    type: TypeName
    member: str


@immutable
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


@immutable
class Word(Node):
    """A keyword among specifiers: `int`, `const`, `typedef`, `self` ..."""

    word: str


@immutable
class NamedType(Node):
    """The name of a typedef among specifiers."""

    name: str


@immutable
class Field(Node):
    """A declarator of a member: `bits` is the width of a bit-field; an unnamed one has None."""

    declarator: Declarator | None
    bits: Expression | None


@immutable
class MemberDeclaration(Node):
    """A line of a struct or union."""

    specifiers: Specifiers
    fields: tuple[Field, ...]


@immutable
class CompositeSpecifier(Node):
    """`struct tag { members }`; `members` is None for a mere reference."""

    keyword: str
    tag: str
    members: tuple[MemberDeclaration, ...] | None


@immutable
class Enumerator(Node):
    """`name = value` in an enum."""

    name: str
    value: Expression | None


@immutable
class EnumSpecifier(Node):
    """`enum tag { enumerators }`; `enumerators` is None for a mere reference."""

    tag: str
    enumerators: tuple[Enumerator, ...] | None


@immutable
class Specifiers(Node):
    """The words a declaration starts with."""

    words: tuple[Word | NamedType | CompositeSpecifier | EnumSpecifier, ...]


@immutable
class PointerPart(Node):
    """`*`, with the qualifiers after it."""

    qualifiers: tuple[str, ...]


@immutable
class ArrayPart(Node):
    """`[size]`, `[keys]` or `[]`."""

    size: Expression | None
    keys: tuple[Parameter, ...] | None
    varargs: bool = False


@immutable
class FunctionPart(Node):
    """`(parameters)`."""

    parameters: tuple[Parameter, ...]
    varargs: bool


@immutable
class Declarator(Node):
    """A name and its type, from the name outwards: `*a[3]` is an array of 3, then a pointer."""

    name: str
    """Empty for an abstract declarator."""
    parts: tuple[PointerPart | ArrayPart | FunctionPart, ...]


@immutable
class Parameter(Node):
    """A parameter, or a key of an associative array."""

    specifiers: Specifiers
    declarator: Declarator | None


@immutable
class TypeName(Node):
    """A type as in a cast."""

    specifiers: Specifiers
    declarator: Declarator | None


# -- top-level items -------------------------------------------------------------------------------------------------


@immutable
class Declaration(Node):
    """`specifiers declarators;`."""

    specifiers: Specifiers
    declarators: tuple[Declarator, ...]


@immutable
class Inline(Node):
    """`inline type name = value;`."""

    specifiers: Specifiers
    declarator: Declarator | None
    value: Expression


@immutable
class TranslatorMember(Node):
    """`name = value;` in a translator."""

    name: str
    value: Expression


@immutable
class Translator(Node):
    """`translator output < input name > { members };`."""

    output: TypeName
    specifiers: Specifiers
    declarator: Declarator
    members: tuple[TranslatorMember, ...]


@immutable
class ProbeDeclaration(Node):
    """`probe name(parameters) : (translated);`."""

    name: str
    parameters: FunctionPart
    translated: FunctionPart | None


@immutable
class Provider(Node):
    """`provider name { probes };`."""

    name: str
    probes: tuple[ProbeDeclaration, ...]


@immutable
class ProbeText(Node):
    """A probe description as written, macros replaced."""

    text: str


@immutable
class If(Node):
    """`if (test) then else otherwise`."""

    test: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = Expression | If


@immutable
class Clause(Node):
    """`descriptions / predicate / { body }`; `body` is None where there are no braces."""

    probes: tuple[ProbeText, ...]
    predicate: Expression | None
    body: tuple[Statement, ...] | None


Item: TypeAlias = Clause | Declaration | Inline | Translator | Provider


# -- walks -------------------------------------------------------------------------------------------------------------

# The largest depth of a program, so that the later passes, which recurse, can handle it.  The parser of libdtrace has
# such a limit too, the depth of its stack.
DEPTH_MAX: Final = 1000
# The depth of a node, if it is not 1: types recurse through more functions than expressions.
_STEPS: Final[dict[type, int]] = {CompositeSpecifier: 8, FunctionPart: 8}
_PART_STEPS: Final = 4


_fields: dict[type[Node], tuple[str, ...]] = {}


def _field_names(node: type[Node]) -> tuple[str, ...]:
    if node not in _fields:
        _fields[node] = tuple(field.name for field in fields(node))
    return _fields[node]


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node."""
    for name in _field_names(type(node)):
        value: Any = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, Node))


def check_depth(root: Node) -> None:
    """Refuse a tree that is nested too deeply.  Raises `CompileError` D_SYNTAX."""
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        depth += _STEPS.get(type(node), 1)
        if isinstance(node, Declarator):
            depth += _PART_STEPS * len(node.parts)
        if depth > DEPTH_MAX:
            raise CompileError(
                "D_SYNTAX", f"this is nested too deeply: at most {DEPTH_MAX} levels are possible", node.line
            )
        pending += ((child, depth) for child in children(node))


def names_in(root: Node) -> frozenset[str]:
    """Return the plain names in a tree."""
    found = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Name):
            found.add(node.name)
        pending += children(node)
    return frozenset(found)
