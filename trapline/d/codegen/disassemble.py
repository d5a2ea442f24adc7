"""DIF as text: the output of `dtrace -S`.

    DIFO 0x1 returns string (unknown) by ref (size 256)
    OFF OPCODE      INSTRUCTION
    00: 29011801    ldgs DT_VAR(280), %r1		! DT_VAR(280) = "execname"
    01: 23000001    ret  %r1

    NAME             ID   KND SCP FLAG TYPE
    execname         118  scl glb r    string (unknown) by ref (size 256)

Source of the layout: FreeBSD libdtrace dt_dis.c.  libdtrace prints the address of the object, which
differs each time; here it is the object's number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from trapline.d.types.types import Kind
from trapline.framework.base import dif
from trapline.framework.base.dif import FORMATS, Format, Op, Subr
from trapline.framework.base.program import (
    BY_REFERENCE,
    BY_USER_REFERENCE,
    MODIFIED,
    REFERENCED,
    Difo,
    DifType,
    DifVariable,
    Program,
    Scope,
    TypeKind,
    VariableKind,
)

_KINDS: Final = {VariableKind.ARRAY: "arr", VariableKind.SCALAR: "scl"}
_SCOPES: Final = {Scope.GLOBAL: "glb", Scope.THREAD: "tls", Scope.LOCAL: "loc"}
_TYPE_KINDS: Final = {TypeKind.CTF: "D type", TypeKind.STRING: "string"}


def disassemble_program(program: Program, strsize: int) -> str:
    """Show every DIF object of a program, in the order it was made."""
    objects = [
        difo
        for ecb in program.ecbs
        for difo in (*(action.difo for action in ecb.actions), ecb.predicate)
        if difo is not None
    ]
    return "".join(disassemble(difo, number, strsize) for number, difo in enumerate(objects, start=1))


def disassemble(difo: Difo, number: int, strsize: int) -> str:
    """Show a DIF object: its type, its instructions, its variables."""
    lines = [
        "",
        f"DIFO 0x{number:x} returns {_type(difo.returns, strsize)}",
        f"{'OFF':<3} {'OPCODE':<8}    INSTRUCTION",
    ]
    lines += [f"{offset:02d}: {code:08x}    {instruction_text(difo, code)}" for offset, code in enumerate(difo.code)]
    if difo.variables:
        lines += ["", f"{'NAME':<16} {'ID':<4} {'KND':<3} {'SCP':<3} {'FLAG':<4} TYPE"]
        lines += [_variable(variable, strsize) for variable in difo.variables]
    return "\n".join(lines) + "\n"


def _type(type_: DifType, strsize: int) -> str:
    name = _TYPE_KINDS[type_.kind]
    flags = {BY_REFERENCE: " by ref", BY_USER_REFERENCE: " by user ref"}.get(type_.flags, "")
    size = type_.size or (strsize if type_.kind is TypeKind.STRING else 0)
    return f"{name} ({Kind(type_.ckind).name.lower()}){flags} (size {size})"


def _variable(variable: DifVariable, strsize: int) -> str:
    flags = "/".join(letter for letter, flag in (("r", REFERENCED), ("w", MODIFIED)) if variable.flags & flag)
    kind, scope = _KINDS[variable.kind], _SCOPES[variable.scope]
    return f"{variable.name:<16} {variable.id:<4x} {kind:<3} {scope:<3} {flags:<4} {_type(variable.type, strsize)}"


def instruction_text(difo: Difo, code: int) -> str:
    """Return one instruction of a DIF object as text."""
    op = Op(dif.opcode(code))
    shown = _OPERANDS[FORMATS[op]](difo, code)
    return f"{op.name.lower():<4} {shown}" if shown else op.name.lower()


def _named(difo: Difo, code: int) -> str:
    """Comment on a variable: its name, where the object has it."""
    number, scopes = dif.index(code), _SCOPE_OF.get(Op(dif.opcode(code)))
    name = next((v.name for v in difo.variables if v.id == number and v.scope is scopes), "")
    return f'\t\t! DT_VAR({number}) = "{name}"' if name else ""


def _array(difo: Difo, code: int) -> str:
    number = dif.r1(code)
    name = next((variable.name for variable in difo.variables if variable.id == number), "")
    comment = f'\t\t! DT_VAR({number}) = "{name}"' if name else ""
    return f"DT_VAR({number}), %r{dif.r2(code)}, %r{dif.rd(code)}{comment}"


def _string(difo: Difo, code: int) -> str:
    offset = dif.index(code)
    return f'DT_STRING[{offset}], %r{dif.rd(code)}\t\t! "{difo.string(offset)}"'


def _integer(difo: Difo, code: int) -> str:
    index = dif.index(code)
    return f"DT_INTEGER[{index}], %r{dif.rd(code)}\t\t! 0x{difo.integers[index]:x}"


def _call(_difo: Difo, code: int) -> str:
    number = dif.index(code)
    return f"DIF_SUBR({number}), %r{dif.rd(code)}\t\t! {Subr(number).name.lower()}"


def _push(_difo: Difo, code: int) -> str:
    kind = dif.r1(code)
    name = _TYPE_KINDS[TypeKind(kind)]
    return f"DT_TYPE({kind}), %r{dif.r2(code)}, %r{dif.rd(code)}\t\t! DT_TYPE({kind}) = {name}"


# Where an instruction keeps its operands -> how they are written.
_OPERANDS: Final[dict[Format, Callable[[Difo, int], str]]] = {
    Format.R3: lambda _d, c: f"%r{dif.r1(c)}, %r{dif.r2(c)}, %r{dif.rd(c)}",
    Format.R2: lambda _d, c: f"%r{dif.r1(c)}, %r{dif.rd(c)}",
    Format.C: lambda _d, c: f"%r{dif.r1(c)}, %r{dif.r2(c)}",
    Format.T: lambda _d, c: f"%r{dif.r1(c)}",
    Format.B: lambda _d, c: f"{dif.label(c)}",
    Format.L: lambda _d, c: f"[%r{dif.r1(c)}], %r{dif.rd(c)}",
    Format.W: lambda _d, c: f"%r{dif.r1(c)}, [%r{dif.rd(c)}]",
    Format.RT: lambda _d, c: f"%r{dif.rd(c)}",
    Format.NONE: lambda _d, _c: "",
    Format.I: _integer,
    Format.S: _string,
    Format.A: _array,
    Format.V: lambda d, c: f"DT_VAR({dif.index(c)}), %r{dif.rd(c)}{_named(d, c)}",
    Format.SV: lambda d, c: f"%r{dif.rd(c)}, DT_VAR({dif.index(c)}){_named(d, c)}",
    Format.K: _call,
    Format.P: _push,
    Format.X: lambda _d, c: f"DT_XLREF[{dif.index(c)}], %r{dif.rd(c)}",
}


def _scopes() -> Iterator[tuple[Op, Scope]]:
    letters = {"G": Scope.GLOBAL, "T": Scope.THREAD, "L": Scope.LOCAL}
    for op in Op:
        if FORMATS[op] in {Format.V, Format.SV}:
            yield op, letters[op.name[2]]


_SCOPE_OF: Final = dict(_scopes())
