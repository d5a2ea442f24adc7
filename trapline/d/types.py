"""D's types: C's, and string, in two data models.

A type is immutable, except that a struct, union or enum tag may be completed once after it was
named (C types may refer to themselves).  `const` and its like are not kept: D accepts and ignores
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from trapline.framework import program
from trapline.framework.program import BY_REFERENCE, BY_USER_REFERENCE, DataModel, DifType, TypeKind


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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """What stack() and its like give: aggregation keys only."""
    SYMBOL = "_symaddr"
    """A kernel address shown as a name: sym(), func(), mod()."""
    USER_SYMBOL = "_usymaddr"
    DYNAMIC = "<DYN>"
    """No value at all: a whole associative array, an aggregation, a translation."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer; `userland` marks addresses of the traced process."""

    target: Type
    userland: bool = False
    size: int = 8

    def __str__(self) -> str:
        return type_name(self)


@dataclass(frozen=True, slots=True)
class Array:
    """An array of `count` elements; 0 where the size was left open (`extern char end[]`)."""

    element: Type
    count: int

    def __str__(self) -> str:
        return type_name(self)


@dataclass(frozen=True, slots=True)
class Function:
    """A function type."""

    returns: Type
    parameters: tuple[Type, ...] = ()
    varargs: bool = False

    def __str__(self) -> str:
        return type_name(self)


@dataclass(frozen=True, slots=True)
class Typedef:
    """Another name for a type."""

    name: str
    target: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct or union.  `bits` is 0 for all but bit-fields."""

    name: str
    type: Type
    offset: int
    """Bit offset from the start."""
    bits: int = 0

    @property
    def place(self) -> int:
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
# Bytes of a string that is part of something: the type is an array of characters (libdtrace dt_open.c, `string`).
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


@dataclass(frozen=True, slots=True)
class Model:
    """A data model: the types that long and pointers decide."""

    model: DataModel
    pointer: int
    """Bytes of a pointer."""
    long: Integer
    unsigned_long: Integer
    typedefs: Mapping[str, Typedef]
    """The typedefs every program sees."""

    def pointer_to(self, target: Type, *, userland: bool = False) -> Pointer:
        """Return the type of pointers to a type."""
        return Pointer(target, userland, self.pointer)


def _model(model: DataModel, size: int) -> Model:
    long = Integer("long", size, signed=True)
    unsigned_long = Integer("unsigned long", size, signed=False)
    wide = size == 8
    word, unsigned_word = (long, unsigned_long) if wide else (INT, UNSIGNED)
    targets = {
        "int8_t": CHAR,
        "int16_t": SHORT,
        "int32_t": INT,
        "int64_t": long if wide else LONG_LONG,
        "uint8_t": UNSIGNED_CHAR,
        "uint16_t": UNSIGNED_SHORT,
        "uint32_t": UNSIGNED,
        "uint64_t": unsigned_long if wide else UNSIGNED_LONG_LONG,
        **dict.fromkeys(("intptr_t", "ssize_t", "ptrdiff_t"), word),
        **dict.fromkeys(("uintptr_t", "size_t"), unsigned_word),
        "uchar_t": UNSIGNED_CHAR,
        "ushort_t": UNSIGNED_SHORT,
        "uint_t": UNSIGNED,
        "ulong_t": unsigned_long,
        "u_longlong_t": UNSIGNED_LONG_LONG,
        **dict.fromkeys(("id_t", "pid_t"), INT if wide else long),
    }
    return Model(model, size, long, unsigned_long, {name: Typedef(name, type_) for name, type_ in targets.items()})


LP64: Final = _model(DataModel.LP64, 8)
ILP32: Final = _model(DataModel.ILP32, 4)
MODELS: Final = {one.model: one for one in (LP64, ILP32)}

# What the subroutines that ask about locks take a pointer to: a lock of any kind.
LOCK: Final = Composite(Kind.STRUCT, "lock_object")
# The type of what is 64 bits in either model.
INT64: Final = LP64.typedefs["int64_t"]


# Words of a type, sorted -> the type; long is as in LP64.
_BASES: Final[dict[str, Special | Integer | Float]] = {
    "": INT,
    "signed": INT,
    "unsigned": UNSIGNED,
    "char": CHAR,
    "char signed": SIGNED_CHAR,
    "char unsigned": UNSIGNED_CHAR,
    "short": SHORT,
    "short signed": SHORT,
    "short unsigned": UNSIGNED_SHORT,
    "int": INT,
    "int signed": INT,
    "int unsigned": UNSIGNED,
    "int short": SHORT,
    "int short signed": SHORT,
    "int short unsigned": UNSIGNED_SHORT,
    "long": LP64.long,
    "long signed": LP64.long,
    "long unsigned": LP64.unsigned_long,
    "int long": LP64.long,
    "int long signed": LP64.long,
    "int long unsigned": LP64.unsigned_long,
    "long long": LONG_LONG,
    "long long signed": LONG_LONG,
    "long long unsigned": UNSIGNED_LONG_LONG,
    "int long long": LONG_LONG,
    "int long long signed": LONG_LONG,
    "int long long unsigned": UNSIGNED_LONG_LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "double long": LONG_DOUBLE,
    "void": VOID,
    "string": STRING,
    "_Bool": BOOL,
}


def base_type(words: Iterable[str], model: Model = LP64) -> Special | Integer | Float | None:
    """Return the type that words make, in any order; None: they do not make one."""
    base = _BASES.get(" ".join(sorted(words)))
    if base == LP64.long:
        return model.long
    return model.unsigned_long if base == LP64.unsigned_long else base


def resolve(type_: Type) -> Type:
    """Follow typedefs to the type itself."""
    while isinstance(type_, Typedef):
        type_ = type_.target
    return type_


def kind(type_: Type) -> Kind:
    """Return the CTF kind of a type; void is an integer there, string none."""
    match resolve(type_):
        case Integer() | Special.VOID | Special.SYMBOL | Special.USER_SYMBOL:
            return Kind.INTEGER
        case Float():
            return Kind.FLOAT
        case Pointer():
            return Kind.POINTER
        case Array():
            return Kind.ARRAY
        case Function():
            return Kind.FUNCTION
        case Composite(kind=composite):
            return composite
        case Enumeration():
            return Kind.ENUM
    return Kind.UNKNOWN


def size_of(type_: Type) -> int:
    """Return the size in bytes, 0 for what has none.

    That of a string is what a member or an element takes, whatever the option strsize says of
    variables.
    """
    match resolve(type_):
        case Integer(size=size) | Float(size=size) | Pointer(size=size) | Composite(size=size) | Enumeration(size=size):
            return size
        case Array(element=element, count=count):
            return size_of(element) * count
        case Special.SYMBOL | Special.USER_SYMBOL:
            return LP64.pointer
        case Special.STRING:
            return STRING_SIZE
    return 0


def align_of(type_: Type) -> int:
    """Return the alignment in bytes."""
    match resolve(type_):
        case Array(element=element):
            return align_of(element)
        case Composite(alignment=alignment):
            return alignment
        case Special.STRING:
            return 1
    return size_of(type_) or 1


def is_integer(type_: Type) -> bool:
    """Integers and enums."""
    return isinstance(resolve(type_), Integer | Enumeration)


def is_pointer(type_: Type) -> bool:
    """Pointers proper."""
    return isinstance(resolve(type_), Pointer)


def is_scalar(type_: Type) -> bool:
    """Integers, enums and pointers."""
    return isinstance(resolve(type_), Integer | Enumeration | Pointer)


def is_arithmetic(type_: Type) -> bool:
    """Integers and enums; floating-point numbers cannot be computed with."""
    return is_integer(type_)


def is_void(type_: Type) -> bool:
    """Void itself."""
    return resolve(type_) is VOID


def is_string(type_: Type) -> bool:
    """Return whether a type is string itself."""
    return resolve(type_) is STRING


def is_character(type_: Type) -> bool:
    """Char, signed or not."""
    resolved = resolve(type_)
    return isinstance(resolved, Integer) and resolved.character


def is_text(type_: Type) -> bool:
    """Return whether a type converts to string: string, char arrays and char pointers."""
    match resolve(type_):
        case Special.STRING:
            return True
        case Pointer(target=inner) | Array(element=inner):
            return is_character(inner)
    return False


def is_reference(type_: Type) -> bool:
    """Return whether values of a type are passed by address, as strings and structs are."""
    return isinstance(resolve(type_), Composite | Array | Float) or is_string(type_)


def is_dynamic(type_: Type) -> bool:
    """Return whether a type is that of something that has no value."""
    return type_ is DYNAMIC


def is_signed(type_: Type) -> bool:
    """Return whether an integer type (or enum) is signed; pointers are not."""
    match resolve(type_):
        case Integer(signed=signed):
            return signed
        case Enumeration():
            return True
    return False


def integer_of(type_: Type) -> Type:
    """Return an integer type as arithmetic sees it: an enum counts as int."""
    return INT if isinstance(resolve(type_), Enumeration) else type_


def promote(left: Type, right: Type) -> Type:
    """Return the type of an operation on two integers: that of higher rank, or the left."""
    left, right = integer_of(left), integer_of(right)
    low, high = resolve(left), resolve(right)
    return right if isinstance(low, Integer) and isinstance(high, Integer) and low.rank < high.rank else left


def element_of(type_: Type) -> Type | None:
    """Return what a pointer points at or an array is made of; None for other types."""
    match resolve(type_):
        case Pointer(target=inner) | Array(element=inner):
            return inner
    return None


def is_userland(type_: Type) -> bool:
    """Return whether a pointer type points into the traced process."""
    resolved = resolve(type_)
    return isinstance(resolved, Pointer) and resolved.userland


def same(left: Type, right: Type) -> bool:
    """Return whether two types are one, typedefs aside."""
    left, right = resolve(left), resolve(right)
    match left, right:
        case (Pointer(target=a), Pointer(target=b)):
            return same(a, b)
        case (Array(element=a, count=m), Array(element=b, count=n)):
            return m == n and same(a, b)
        case (Function(), Function()):
            return (
                same(left.returns, right.returns)
                and left.varargs == right.varargs
                and len(left.parameters) == len(right.parameters)
                and all(map(same, left.parameters, right.parameters))
            )
        case (Composite(), Composite()):
            return left is right or (left.kind is right.kind and bool(left.tag) and left.tag == right.tag)
        case (Enumeration(), Enumeration()):
            return left is right or (bool(left.tag) and left.tag == right.tag)
    return left == right


def pointers_compatible(left: Type, right: Type) -> bool:
    """Return whether pointers go together: equal targets, text, or void on one side."""
    a, b = element_of(left), element_of(right)
    if a is None or b is None:
        return False
    return is_void(a) or is_void(b) or same(a, b) or (is_character(a) and is_character(b))


def diftype(type_: Type, *, userland: bool = False) -> DifType:
    """Describe a type for DIF; a string has size 0, which means strsize."""
    if is_string(type_):
        return replace(program.STRING, flags=BY_USER_REFERENCE) if userland else program.STRING
    flags = (BY_USER_REFERENCE if userland else BY_REFERENCE) if is_reference(type_) else 0
    return DifType(TypeKind.CTF, kind(type_).value, flags, size_of(type_))


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
