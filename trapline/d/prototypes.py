"""The check of arguments against the prototype of a function: their number and their types.

Source: FreeBSD libdtrace dt_parser.c (dt_node_is_argcompat), dt_ident.c (dt_idcook_func).
"""

from __future__ import annotations

from trapline.d import builtins, typed
from trapline.d.errors import CompileError
from trapline.d.operators import is_zero
from trapline.d.type_rules import (
    element_of,
    is_dynamic,
    is_integer,
    is_pointer,
    is_reference,
    is_scalar,
    is_string,
    is_text,
    is_void,
    pointers_compatible,
    same,
    size_of,
)
from trapline.d.types import LOCK, Composite, Special, Type, resolve, type_name


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


def argument_fits(argument: typed.Node, parameter: Type) -> bool:
    """Return whether a value can be passed for a parameter or key."""
    given = argument.type
    if is_void(given) or is_dynamic(given):
        return False
    if is_string(parameter) or (is_pointer(parameter) and is_text(parameter)):
        return is_text(given) or (is_pointer(given) and is_void(element_of(given) or given)) or is_zero(argument)
    if is_integer(parameter):
        return is_integer(given) or (is_scalar(given) and size_of(parameter) == size_of(given))
    if is_pointer(parameter):
        target = element_of(parameter)
        if target is not None and resolve(target) is LOCK:
            inner = element_of(given)
            return is_zero(argument) or (inner is not None and isinstance(resolve(inner), Composite | Special))
        return (
            pointers_compatible(parameter, given)
            or is_zero(argument)
            or (is_reference(given) and is_void(element_of(parameter) or parameter))
        )
    return same(parameter, given)
