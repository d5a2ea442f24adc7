"""Checked expressions: names resolved, types known, conversions explicit.

`Expressions` makes these nodes, `codegen` turns each into a few DIF instructions.  Values are
64-bit patterns; strings, structs, unions and arrays are passed by address.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from emu.support.immutable import immutable
from trapline.d.types.rules import is_reference
from trapline.d.types.types import DYNAMIC, INT, STRING, Composite, Member, Pointer, Type, resolve
from trapline.framework.base.dif import USER_VARIABLE_BASE, Op, Subr
from trapline.framework.base.program import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable, built-in or the program's own.

    `keys` is None unless it is an associative array.
    """

    name: str
    id: int
    scope: Scope
    type: Type
    keys: tuple[Type, ...] | None = None

    @property
    def builtin(self) -> bool:
        """Return whether the framework provides it."""
        return self.id < USER_VARIABLE_BASE


@immutable
class Constant:
    """An integer; `value` is its 64-bit pattern."""

    value: int
    type: Type = INT

    @property
    def signed(self) -> int:
        """The pattern read as a signed number."""
        return self.value - (1 << 64) if self.value >> 63 else self.value


@immutable
class Text:
    """A string literal."""

    value: str
    type: Type = STRING


@immutable
class Scalar:
    """A variable that is not an associative array."""

    variable: Variable

    @property
    def type(self) -> Type:
        """The variable's type."""
        return self.variable.type


@immutable
class Element:
    """An element of an associative array."""

    variable: Variable
    keys: tuple[Node, ...]

    @property
    def type(self) -> Type:
        """The elements' type."""
        return self.variable.type


@immutable
class BuiltinElement:
    """An element of args[], regs[] or uregs[]."""

    variable: Variable
    index: Node
    type: Type


@immutable
class Memory:
    """The value at an address; `member` is its bit-field, if it is one."""

    address: Node
    type: Type
    writable: bool = False
    userland: bool = False
    member: Member | None = None


def in_process(address: Node, type_: Type, *, writable: bool = False, member: Member | None = None) -> Memory:
    """Return memory of the traced process: a pointer that is read there points into it too."""
    pointer = resolve(type_)
    pointed = replace(pointer, userland=True) if isinstance(pointer, Pointer) else type_
    return Memory(address, pointed, writable, userland=True, member=member)


@immutable
class Unary:
    """NOT, or SUB: the operand subtracted from zero."""

    op: Op
    operand: Node
    type: Type


@immutable
class Not:
    """Logical negation."""

    operand: Node
    type: Type = INT


@immutable
class Binary:
    """An arithmetic or bit operation."""

    op: Op
    left: Node
    right: Node
    type: Type


@immutable
class Compare:
    """A comparison: `op` is CMP or SCMP, `branch` the branch that is taken if it is true."""

    op: Op
    branch: Op
    left: Node
    right: Node
    type: Type = INT


class Connective(Enum):
    """The logical operators with two operands."""

    AND = "&&"
    OR = "||"
    XOR = "^^"


@immutable
class Logical:
    """A logical operation."""

    connective: Connective
    left: Node
    right: Node
    type: Type = INT


@immutable
class Choice:
    """`test ? then : otherwise`."""

    test: Node
    then: Node
    otherwise: Node
    type: Type


@immutable
class Sequence:
    """`left, right`."""

    left: Node
    right: Node

    @property
    def type(self) -> Type:
        """The type of the right operand."""
        return self.right.type


@immutable
class Convert:
    """A cast: the value is cut or extended as the two types require."""

    operand: Node
    type: Type


@immutable
class Relabel:
    """A value under another type, its bits unchanged: stringof, an array as a pointer."""

    operand: Node
    type: Type


@immutable
class Store:
    """An assignment; its value is what was stored."""

    target: Target
    value: Node

    @property
    def type(self) -> Type:
        """The type of the target."""
        return self.target.type


@immutable
class Step:
    """`++` and `--`: `amount` is 1, or what a pointer points at; `after` returns the old value."""

    op: Op
    target: Target
    amount: int
    after: bool

    @property
    def type(self) -> Type:
        """The type of the target."""
        return self.target.type


@immutable
class Call:
    """A subroutine."""

    subroutine: Subr
    arguments: tuple[Node, ...]
    parameters: tuple[Type, ...]
    type: Type


@immutable
class Parameter:
    """A parameter within the body of an inline."""

    name: str
    type: Type


@immutable
class Let:
    """An inline with parameters, used: each argument is computed once."""

    parameters: tuple[Parameter, ...]
    arguments: tuple[Node, ...]
    body: Node

    @property
    def type(self) -> Type:
        """The type of the inline."""
        return self.body.type


@dataclass(eq=False, slots=True)
class Translator:
    """A translation to a struct: each member is an expression over the input."""

    output: Composite
    input: Parameter
    members: dict[str, Node] = field(default_factory=dict)


@immutable
class Translation:
    """A value seen through a translator: it is not a value itself, but its members are."""

    translator: Translator
    operand: Node
    target: Type
    """Its type: the struct, or a pointer to it."""

    @property
    def type(self) -> Type:
        """The type without values: it cannot be used in computations."""
        return DYNAMIC


@immutable
class Build:
    """A struct that is built in scratch memory."""

    type: Composite
    fields: tuple[tuple[Member, Node], ...]


@immutable
class Action:
    """A call of an action or aggregating function: it has a type, and no code for a value."""

    name: str
    type: Type


@immutable
class Aggregate:
    """An aggregation: only actions can take it."""

    name: str
    type: Type = DYNAMIC


Target: TypeAlias = Scalar | Element | Memory

Node: TypeAlias = (
    Constant
    | Text
    | Scalar
    | Element
    | BuiltinElement
    | Memory
    | Unary
    | Not
    | Binary
    | Compare
    | Logical
    | Choice
    | Sequence
    | Convert
    | Relabel
    | Store
    | Step
    | Call
    | Parameter
    | Let
    | Translation
    | Build
    | Action
    | Aggregate
)


def translation(node: Node) -> Translation | None:
    """Return the translation that a node is, also within an inline with parameters; else None."""
    while isinstance(node, Let):
        node = node.body
    return node if isinstance(node, Translation) else None


def address_of(node: Node, type_: Type) -> Node | None:
    """Return the address of a node as a node of type `type_`; None if it has none."""
    if isinstance(node, Memory):
        return Relabel(node.address, type_)
    return Relabel(node, type_) if is_reference(node.type) else None


def is_writable(node: Node) -> bool:
    """Return whether a store through a node compiles: it may reach the program's own memory."""
    match node:
        case Scalar(variable=variable) | Element(variable=variable):
            return not variable.builtin
        case Memory(writable=writable):
            return writable
        case Call():
            return True  # the result of a subroutine is in scratch memory
        case Relabel(operand=operand) | Convert(operand=operand) | Unary(operand=operand):
            return is_writable(operand)
        case Binary(left=left, right=right):
            return is_writable(left) or is_writable(right)
    return False
