"""Check whether a DIF object is safe to run: the only gate between a compiler and the DIF machine.

Source: FreeBSD dtrace.c dtrace_difo_validate(), dtrace_difo_validate_helper() is not needed here;
the messages are its own. One rule is Trapline's: a user variable must be declared, for which the
kernel has an assertion.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from typing import Final

from trapline.framework.base import dif
from trapline.framework.base.dif import (
    FORMATS,
    INTEGER_REGISTERS,
    USER_VARIABLE_BASE,
    USER_VARIABLE_MAX,
    Format,
    Op,
    Subr,
    Var,
)
from trapline.framework.base.dynvars import variable_size
from trapline.framework.base.program import BY_REFERENCE, Difo, DifVariable, Scope, TypeKind, VariableKind

# Largest global or clause-local by reference (dtrace_statvar_maxsize).
STATIC_MAX: Final = 16 * 1024
# Largest DIF object (dtrace_difo_maxsize).
OBJECT_MAX: Final = 256 * 1024
_ARRAY_MAX: Final = 0xFF
_VALUE_SIZES: Final = frozenset({0, 1, 2, 4, 8})

Declared = MutableMapping[tuple[Scope, int], DifVariable]


class InvalidDifError(ValueError):
    """A DIF object that is refused; the message is dtrace.c's."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(f"DIF object error: [{place}]: {message}")


def _registers(pc: int, registers: tuple[int, ...], written: int | None = None) -> None:
    for register in registers:
        if register >= INTEGER_REGISTERS:
            raise InvalidDifError(pc, f"invalid register {register}")
    if written == 0:
        raise InvalidDifError(pc, "cannot write to %r0")


def _reserved(pc: int, bits: int) -> None:
    if bits:
        raise InvalidDifError(pc, "non-zero reserved bits")


def _three(pc: int, code: int, _difo: Difo) -> None:
    _registers(pc, (dif.r1(code), dif.r2(code), dif.rd(code)), dif.rd(code))


def _two(pc: int, code: int, _difo: Difo) -> None:
    _reserved(pc, dif.r2(code))
    _registers(pc, (dif.r1(code), dif.rd(code)), dif.rd(code))


def _compare(pc: int, code: int, _difo: Difo) -> None:
    _registers(pc, (dif.r1(code), dif.r2(code)))
    _reserved(pc, dif.rd(code))


def _test(pc: int, code: int, _difo: Difo) -> None:
    _registers(pc, (dif.r1(code),))
    _reserved(pc, code & 0xFFFF)


def _branch(pc: int, code: int, difo: Difo) -> None:
    label = dif.label(code)
    if label >= len(difo.code):
        raise InvalidDifError(pc, f"invalid branch target {label}")
    if label <= pc:
        raise InvalidDifError(pc, f"backward branch to {label}")


def _store(pc: int, code: int, _difo: Difo) -> None:
    _reserved(pc, dif.r2(code))
    _registers(pc, (dif.r1(code), dif.rd(code)))
    if dif.rd(code) == 0:
        raise InvalidDifError(pc, "cannot write to 0 address")


def _return(pc: int, code: int, _difo: Difo) -> None:
    _reserved(pc, code & 0xFFFF00)
    _registers(pc, (dif.rd(code),))


def _none(pc: int, code: int, _difo: Difo) -> None:
    _reserved(pc, code & 0xFFFFFF)


def _integer(pc: int, code: int, difo: Difo) -> None:
    if dif.index(code) >= len(difo.integers):
        raise InvalidDifError(pc, f"invalid integer ref {dif.index(code)}")
    _registers(pc, (dif.rd(code),), dif.rd(code))


def _string(pc: int, code: int, difo: Difo) -> None:
    if dif.index(code) >= len(difo.strings):
        raise InvalidDifError(pc, f"invalid string ref {dif.index(code)}")
    _registers(pc, (dif.rd(code),), dif.rd(code))


def _array(pc: int, code: int, _difo: Difo) -> None:
    if dif.r1(code) > _ARRAY_MAX:
        raise InvalidDifError(pc, f"invalid array {dif.r1(code)}")
    _registers(pc, (dif.r2(code), dif.rd(code)), dif.rd(code))


def _load_variable(pc: int, code: int, _difo: Difo) -> None:
    if not USER_VARIABLE_BASE <= dif.index(code) <= USER_VARIABLE_MAX and dif.index(code) not in set(Var):
        raise InvalidDifError(pc, f"invalid variable {dif.index(code)}")
    _registers(pc, (dif.rd(code),), dif.rd(code))


def _store_variable(pc: int, code: int, _difo: Difo) -> None:
    if dif.index(code) < USER_VARIABLE_BASE:
        raise InvalidDifError(pc, f"invalid variable {dif.index(code)}")
    _registers(pc, (dif.rd(code),))


def _call(pc: int, code: int, _difo: Difo) -> None:
    if dif.index(code) > max(Subr):
        raise InvalidDifError(pc, f"invalid subr {dif.index(code)}")
    _registers(pc, (dif.rd(code),), dif.rd(code))


def _push(pc: int, code: int, _difo: Difo) -> None:
    op, kind = dif.opcode(code), dif.r1(code)
    if op == Op.PUSHTR:
        if kind not in (TypeKind.STRING, TypeKind.CTF):
            raise InvalidDifError(pc, f"invalid ref type {kind}")
        _registers(pc, (dif.r2(code), dif.rd(code)))
    else:
        if kind != TypeKind.CTF:
            raise InvalidDifError(pc, f"invalid val type {kind}")
        _registers(pc, (dif.r2(code), dif.rd(code)))


_CHECKS: Final[Mapping[Format, Callable[[int, int, Difo], None]]] = {
    Format.R3: _three,
    Format.R2: _two,
    Format.C: _compare,
    Format.T: _test,
    Format.B: _branch,
    Format.L: _two,
    Format.W: _store,
    Format.RT: _return,
    Format.NONE: _none,
    Format.I: _integer,
    Format.S: _string,
    Format.A: _array,
    Format.V: _load_variable,
    Format.SV: _store_variable,
    Format.K: _call,
    Format.P: _push,
}

# The variables of an instruction.
_SCOPES: Final[Mapping[int, Scope]] = {
    Op.LDGS: Scope.GLOBAL,
    Op.STGS: Scope.GLOBAL,
    Op.LDGAA: Scope.GLOBAL,
    Op.STGAA: Scope.GLOBAL,
    Op.LDTS: Scope.THREAD,
    Op.STTS: Scope.THREAD,
    Op.LDTAA: Scope.THREAD,
    Op.STTAA: Scope.THREAD,
    Op.LDLS: Scope.LOCAL,
    Op.STLS: Scope.LOCAL,
}
# By opcode; other opcodes are not instructions.
_FORMS: Final[dict[int, Format]] = {int(op): form for op, form in FORMATS.items()}
_ALL_SCOPES: Final = frozenset(Scope)
_KINDS: Final = frozenset(VariableKind)


def validate(difo: Difo, declared: Declared) -> None:
    """Check a DIF object; `declared` has the variables of those enabled before.

    Raises InvalidDifError.
    """
    size = 4 * len(difo.code) + 8 * len(difo.integers) + len(difo.strings) + 20 * len(difo.variables)
    if size > OBJECT_MAX:
        raise InvalidDifError(0, f"DIF object of {size} bytes is too large")
    for pc, code in enumerate(difo.code):
        op = dif.opcode(code)
        form = _FORMS.get(op)
        if form is None or form is Format.X:
            raise InvalidDifError(pc, f"invalid opcode {op}")
        _CHECKS[form](pc, code, difo)
    if not difo.code or dif.opcode(difo.code[-1]) != Op.RET:
        raise InvalidDifError(max(len(difo.code) - 1, 0), "expected 'ret' as last DIF instruction")
    if not difo.strings.endswith(b"\0"):
        raise InvalidDifError(0, "string table is not terminated")
    if not difo.returns.flags & BY_REFERENCE and difo.returns.size not in _VALUE_SIZES and difo.returns.flags == 0:
        raise InvalidDifError(len(difo.code) - 1, "bad return size")
    known = _check_variables(difo, declared)
    for pc, code in enumerate(difo.code):
        _check_use(pc, code, known)


def _check_variables(difo: Difo, declared: Declared) -> Declared:
    """Check the variable table for contradictions, also with the declared variables.

    Return all variables that are known now.
    """
    known = ChainMap[tuple[Scope, int], DifVariable]({}, declared)
    for place, variable in enumerate(difo.variables):
        if variable.scope not in _ALL_SCOPES:
            raise InvalidDifError(place, f"unrecognized variable scope {variable.scope}")
        if variable.kind not in _KINDS:
            raise InvalidDifError(place, f"unrecognized variable type {variable.kind}")
        if variable.id > USER_VARIABLE_MAX:
            raise InvalidDifError(place, f"{variable.id} exceeds variable id limit")
        if variable.id < USER_VARIABLE_BASE:
            continue
        if variable.type.flags & BY_REFERENCE:
            if variable_size(variable) == 0:
                raise InvalidDifError(place, "zero-sized variable")
            if variable.scope in (Scope.GLOBAL, Scope.LOCAL) and variable_size(variable) > STATIC_MAX:
                raise InvalidDifError(place, "oversized by-ref static")
        existing = known.setdefault((variable.scope, variable.id), variable)
        _check_same(place, variable, existing)
    return known


def _check_same(place: int, variable: DifVariable, existing: DifVariable) -> None:
    if existing.kind != variable.kind:
        raise InvalidDifError(place, f"{variable.id} changed variable kind")
    if existing.type.flags != variable.type.flags:
        raise InvalidDifError(place, f"{variable.id} changed variable type flags")
    if variable.type.size != 0 and variable_size(variable) != variable_size(existing):
        raise InvalidDifError(place, f"{variable.id} changed variable type size")


def _check_use(pc: int, code: int, known: Declared) -> None:
    """Check that a user variable is declared."""
    op, number = dif.opcode(code), dif.index(code)
    scope = _SCOPES.get(op)
    if scope is None or (number < USER_VARIABLE_BASE and op in (Op.LDGS, Op.LDLS)):
        return
    if (scope, number) not in known:
        raise InvalidDifError(pc, f"invalid variable {number}")


def is_destructive(difo: Difo) -> bool:
    """Return whether a DIF object changes the traced process."""
    return any(dif.opcode(code) == Op.CALL and dif.index(code) in (Subr.COPYOUT, Subr.COPYOUTSTR) for code in difo.code)
