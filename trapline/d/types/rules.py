"""The rules of D's types: their sizes, their uses, and compatible operands.

Source: FreeBSD libdtrace dt_parser.c (dt_node_is_integer and the like, dt_node_promote).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trapline.d.errors import CompileError
from trapline.d.types.data_models import LP64
from trapline.d.types.types import (
    CHAR,
    DYNAMIC,
    INT,
    STRING,
    STRING_SIZE,
    VOID,
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Integer,
    Kind,
    Pointer,
    Special,
    Type,
    resolve,
)
from trapline.framework.base import program
from trapline.framework.base.program import BY_REFERENCE, BY_USER_REFERENCE, DifType, TypeKind

# Bytes of the largest value that DIF can describe (dtdt_size has 32 bits).
_LARGEST: Final = 0xFFFF_FFFF


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
    """Return the size in bytes; 0: the type has none.

    A string's size is that of a member or an element, whatever the option strsize is for variables.
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
    """Return whether a type is an integer or an enum."""
    return isinstance(resolve(type_), Integer | Enumeration)


def is_pointer(type_: Type) -> bool:
    """Return whether a type is a pointer, not an array."""
    return isinstance(resolve(type_), Pointer)


def is_address(type_: Type) -> bool:
    """Return whether a type is a pointer or an array, whose value is an address."""
    return isinstance(resolve(type_), Pointer | Array)


def is_scalar(type_: Type) -> bool:
    """Return whether a type is an integer, an enum or a pointer."""
    return isinstance(resolve(type_), Integer | Enumeration | Pointer)


def is_arithmetic(type_: Type) -> bool:
    """Return whether values of a type can be computed with: floating-point numbers cannot."""
    return is_integer(type_)


def is_void(type_: Type) -> bool:
    """Return whether a type is void."""
    return resolve(type_) is VOID


def is_string(type_: Type) -> bool:
    """Return whether a type is string itself."""
    return resolve(type_) is STRING


def is_character(type_: Type) -> bool:
    """Return whether a type is char, signed or not."""
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
    """Return whether a type is that of an expression without a value."""
    return type_ is DYNAMIC


def is_signed(type_: Type) -> bool:
    """Return whether a type is a signed integer: enums and pointers are not (dt_node_type_assign)."""
    resolved = resolve(type_)
    return isinstance(resolved, Integer) and resolved.signed


def integer_of(type_: Type) -> Type:
    """Return the integer type for arithmetic: an enum is an int."""
    return INT if isinstance(resolve(type_), Enumeration) else type_


def promote(left: Type, right: Type) -> Type:
    """Return the type of an operation on two integers: that of higher rank.

    Of `long` and `long long` it is the latter, which is declared after it (dt_type_promote).
    """
    left, right = integer_of(left), integer_of(right)
    low, high = resolve(left), resolve(right)
    assert isinstance(low, Integer)
    assert isinstance(high, Integer)
    return right if (low.rank, "long long" in low.name) < (high.rank, "long long" in high.name) else left


def element_of(type_: Type) -> Type | None:
    """Return the type of a pointer's target or of an array's elements; None for other types."""
    match resolve(type_):
        case Pointer(target=inner) | Array(element=inner):
            return inner
    return None


def is_userland(type_: Type) -> bool:
    """Return whether a pointer type points into the traced process."""
    resolved = resolve(type_)
    return isinstance(resolved, Pointer) and resolved.userland


def same(left: Type, right: Type) -> bool:
    """Return whether two types are equal, without their typedefs."""
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
    """Return whether addresses are compatible: equal targets, or void on one side.

    A string is an array of char here (dt_node_is_ptrcompat).
    """
    a, b = (CHAR if is_string(side) else element_of(side) for side in (left, right))
    return a is not None and b is not None and (is_void(a) or is_void(b) or same(a, b))


def diftype(type_: Type, *, userland: bool = False) -> DifType:
    """Describe a type for DIF; a string has size 0, which means strsize.

    Raises `CompileError` D_DECL_ARRBIG.
    """
    if is_string(type_):
        return replace(program.STRING, flags=BY_USER_REFERENCE) if userland else program.STRING
    flags = (BY_USER_REFERENCE if userland else BY_REFERENCE) if is_reference(type_) else 0
    size = size_of(type_)
    if size > _LARGEST:
        raise CompileError("D_DECL_ARRBIG", f"a value of {size} bytes is too large: at most {_LARGEST} are possible")
    return DifType(TypeKind.CTF, kind(type_).value, flags, size)
