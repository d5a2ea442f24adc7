"""D's types: C's, and string.

A type is immutable, except that a struct, union or enum tag may be completed once after it was
named (C types may refer to themselves).  `const` and the like are not kept: D accepts and ignores
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from emu.support.immutable import immutable


class Kind(Enum):
    """CTF kinds (CTF_K_*), as `DifType.ckind` counts them."""

    UNKNOWN = 0
    INTEGER = 1
    FLOAT = 2
    POINTER = 3
    ARRAY = 4
    FUNCTION = 5
    STRUCT = 6
    UNION = 7
    ENUM = 8


@immutable
class Integer:
    """An integer type; `character` marks those that hold text."""

    name: str
    size: int
    signed: bool
    character: bool = False

    @property
    def rank(self) -> int:
        """Order for mixed operands: by width, unsigned above signed."""
        return 8 * self.size + (not self.signed)

    def __str__(self) -> str:
        return self.name


@immutable
class Float:
    """A floating-point type: it can be recorded and printed, not computed with."""

    name: str
    size: int

    def __str__(self) -> str:
        return self.name


class Special(Enum):
    """Types with a single value each."""

    VOID = "void"
    STRING = "string"
    STACK = "stack"
    """The result of stack() and the like: only a key of aggregations."""
    SYMBOL = "_symaddr"
    """A kernel address shown as a name: sym(), func(), mod()."""
    USER_SYMBOL = "_usymaddr"
    DYNAMIC = "<DYN>"
    """No value at all: a whole associative array, an aggregation, a translation."""

    def __str__(self) -> str:
        return self.value


@immutable
class Pointer:
    """A pointer; `userland` marks addresses of the traced process."""

    target: Type
    userland: bool = False
    size: int = 8

    def __str__(self) -> str:
        return type_name(self)


@immutable
class Array:
    """An array of `count` elements; 0 where the size was left open (`extern char end[]`)."""

    element: Type
    count: int

    def __str__(self) -> str:
        return type_name(self)


@immutable
class Function:
    """A function type."""

    returns: Type
    parameters: tuple[Type, ...] = ()
    varargs: bool = False

    def __str__(self) -> str:
        return type_name(self)


@immutable
class Typedef:
    """A type under a name that a program or a system gave it."""

    name: str
    target: Type

    def __str__(self) -> str:
        return self.name


@immutable
class Member:
    """A member of a struct or union.  `bits` is 0 for all but bit-fields."""

    name: str
    type: Type
    offset: int
    """Bit offset from the start."""
    bits: int = 0

    @property
    def byte_offset(self) -> int:
        """Byte offset to read and write it at."""
        return self.unit[0] if self.bits else self.offset // 8

    @property
    def unit(self) -> tuple[int, int]:
        """The smallest aligned unit that holds a whole bit-field: byte offset, size in bytes.

        C's layout has each within one unit of its type.
        """
        for size in (1, 2, 4, 8):
            first = self.offset // (8 * size)
            if (self.offset + self.bits - 1) // (8 * size) == first:
                return first * size, size
        raise ValueError(f"bit-field {self.name} is in no unit of 8 bytes")


@dataclass(eq=False, slots=True)
class Composite:
    """A struct or union; `members` is None until it is defined."""

    kind: Kind
    tag: str
    members: tuple[Member, ...] | None = None
    size: int = 0
    alignment: int = 1

    def member(self, name: str) -> Member | None:
        """Find a member, also within unnamed members; None if there is none."""
        for member in self.members or ():
            if member.name == name:
                return member
            inner = resolve(member.type)
            if not member.name and isinstance(inner, Composite) and (found := inner.member(name)):
                return Member(found.name, found.type, member.offset + found.offset, found.bits)
        return None

    def names(self) -> list[str]:
        """List the names of the members."""
        return [member.name for member in self.members or ()]

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.tag or '(anon)'}"


@dataclass(eq=False, slots=True)
class Enumeration:
    """An enum; `enumerators` is None until it is defined."""

    tag: str
    enumerators: dict[str, int] | None = field(default=None)
    size: int = 4

    def __str__(self) -> str:
        return f"enum {self.tag or '(anon)'}"


Type: TypeAlias = Integer | Float | Special | Pointer | Array | Function | Typedef | Composite | Enumeration

VOID: Final = Special.VOID
STRING: Final = Special.STRING
# Size in bytes of a string that is a member or an element: the type is an array of characters (libdtrace dt_open.c,
# `string`).
STRING_SIZE: Final = 256
STACK: Final = Special.STACK
SYMBOL: Final = Special.SYMBOL
USER_SYMBOL: Final = Special.USER_SYMBOL
DYNAMIC: Final = Special.DYNAMIC

CHAR: Final = Integer("char", 1, signed=True, character=True)
SIGNED_CHAR: Final = Integer("signed char", 1, signed=True, character=True)
UNSIGNED_CHAR: Final = Integer("unsigned char", 1, signed=False, character=True)
BOOL: Final = Integer("_Bool", 1, signed=False)
SHORT: Final = Integer("short", 2, signed=True)
UNSIGNED_SHORT: Final = Integer("unsigned short", 2, signed=False)
INT: Final = Integer("int", 4, signed=True)
UNSIGNED: Final = Integer("unsigned int", 4, signed=False)
LONG_LONG: Final = Integer("long long", 8, signed=True)
UNSIGNED_LONG_LONG: Final = Integer("unsigned long long", 8, signed=False)
FLOAT: Final = Float("float", 4)
DOUBLE: Final = Float("double", 8)
LONG_DOUBLE: Final = Float("long double", 16)
# The target of pointers for the subroutines about locks: a lock of any kind.
LOCK: Final = Composite(Kind.STRUCT, "lock_object")


def resolve(type_: Type) -> Type:
    """Follow typedefs to the type itself."""
    while isinstance(type_, Typedef):
        type_ = type_.target
    return type_


def type_name(type_: Type) -> str:
    """Write a type as C does: `struct vnode *`, `int [10]`, `void (*)(int)`."""
    return _declare(type_, "")


def ctf_name(type_: Type) -> str:
    """Write a type as CTF names it, a function without its parameters (ctf_type_name)."""
    return _declare(type_, "", ctf=True)


def _declare(type_: Type, inner: str, *, ctf: bool = False) -> str:
    """Write a declaration of `inner` with a type."""
    match type_:
        case Pointer(target=target):
            star = f"*{inner}"
            return _declare(target, f"({star})" if isinstance(target, Array | Function) else star, ctf=ctf)
        case Array(element=element, count=count):
            return _declare(element, f"{inner}[{count or ''}]", ctf=ctf)
        case Function(returns=returns, parameters=parameters, varargs=varargs):
            listed = [type_name(parameter) for parameter in parameters] + ["..."] * varargs
            return _declare(returns, f"{inner}({'' if ctf else ', '.join(listed) or 'void'})", ctf=ctf)
    name = str(type_).removesuffix(" (anon)") if ctf else str(type_)
    return f"{name} {inner}" if inner else name
