"""Conversions of values: when they are stored, and as arguments and keys.

Source: FreeBSD libdtrace dt_parser.c (dt_node_is_argcompat(), dt_cook_op2()), dt_ident.c
(dt_idcook_func()).
"""

from __future__ import annotations

from trapline.d.check import builtins, typed
from trapline.d.errors import CompileError
from trapline.d.types.rules import (
    element_of,
    is_dynamic,
    is_integer,
    is_string,
    is_text,
    pointers_compatible,
    same,
)
from trapline.d.types.types import LOCK, Composite, Function, Special, Type, resolve, type_name


def converted(value: typed.Node, type_: Type, name: str, line: int) -> typed.Node:
    """Convert a value to the type of the variable or member `name` that it is stored in.

    Raises `CompileError` D_OP_INCOMPAT.
    """
    if not compatible(type_, value):
        raise CompileError(
            "D_OP_INCOMPAT", f"{name} is {type_name(type_)}: {type_name(value.type)} cannot be assigned to it", line
        )
    if is_integer(type_) or same(type_, value.type):
        return value
    return typed.Relabel(value, type_)


def is_zero(node: typed.Node) -> bool:
    """Return whether a node is the constant 0: a pointer that is cast from it is not."""
    return isinstance(node, typed.Constant) and node.value == 0 and is_integer(node.type)


def is_null(pointer: typed.Node, constant: typed.Node) -> bool:
    """Return whether these are a pointer, array or string and the constant 0."""
    return is_zero(constant) and (element_of(pointer.type) is not None or is_string(pointer.type))


def check_count(name: str, given: int, signature: builtins.Signature, line: int) -> None:
    """Raise `CompileError` D_PROTO_LEN if a function has too few or too many arguments."""
    most = len(signature.parameters)
    least = most - signature.optional
    if given < least or (given > most and not signature.varargs):
        wanted = str(least) if least == most else f"{least} to {most}"
        if signature.varargs:
            wanted = f"at least {least}"
        plural = "" if least == 1 and (most == 1 or signature.varargs) else "s"
        raise CompileError("D_PROTO_LEN", f"{name}( ) takes {wanted} argument{plural}, not {given}", line)


def incompatible(what: str, wanted: Type, given: Type, line: int) -> CompileError:
    """Return the error of an argument or a key of the wrong type."""
    return CompileError(
        "D_PROTO_ARG",
        f"{what} is incompatible with its prototype: {type_name(wanted)} wanted, {type_name(given)} given",
        line,
    )


def compatible(wanted: Type, value: typed.Node) -> bool:
    """Return whether a value can be stored or passed where a type is wanted (dt_node_is_argcompat).

    A lock may be of any kind: the guests' locks have types of their own.
    """
    given = value.type
    if is_dynamic(given):
        return False
    if (is_integer(wanted) and is_integer(given)) or (is_text(wanted) and is_text(given)):
        return True
    if isinstance(resolve(wanted), Composite | Function | Special) and not is_string(wanted):
        return same(wanted, given)
    target = element_of(wanted)
    if target is not None and resolve(target) is LOCK and not is_zero(value):
        inner = element_of(given)
        return inner is not None and isinstance(resolve(inner), Composite | Special)
    return pointers_compatible(wanted, given) or (is_zero(value) and (target is not None or is_string(wanted)))
