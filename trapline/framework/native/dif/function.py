"""A DIF object as one function of machine code.

`trapline.framework.dif.interpreter` defines the meaning of DIF; the tables here have the same
operations, one small function for each, which use a `Translation`.
`trapline.framework.native.dif.variables` has those on variables.

An operation without a native form is an upcall.  After each operation that can fault the flags are
tested: a fault ends the function with the result 0, and the firing's words have its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.native.builder import Function, Module
from emu.native.operations import Condition, Word
from trapline.framework.base.dif import TUPLE_REGISTERS, Op
from trapline.framework.base.dynvars import STRING_SIZE
from trapline.framework.base.faults import DIVZERO, TUPOFLOW
from trapline.framework.base.program import Difo, TypeKind
from trapline.framework.dif.interpreter import LOADS, STORES, Instruction
from trapline.framework.dif.operations import SIZE_MAX
from trapline.framework.native.dif.translation import Operation, Surroundings, Translation
from trapline.framework.native.dif.variables import VARIABLES
from trapline.framework.native.firing_words import ENTRY
from trapline.framework.native.subroutines.subroutines import WITHOUT_RESULT, subroutine_name
from trapline.framework.native.upcall_code import Upcall

_SIGN_BIT: Final = 63
_COUNT_MASK: Final = 63
_LOWEST: Final = 1 << _SIGN_BIT
_MINUS_ONE: Final = (1 << 64) - 1
_WORD: Final = 8


def _signed_quotient(f: Function, a: Word, b: Word) -> Word:
    """Divide; by -1 negate, since a CPU traps at the lowest number."""
    negates = f.eq(b, _MINUS_ONE)
    return f.select(negates, f.neg(a), f.sdiv(a, f.select(negates, 1, b)))


# Arithmetic

ARITHMETIC: Final[Mapping[Op, Callable[[Function, Word, Word], Word]]] = {
    Op.OR: lambda f, a, b: f.or_(a, b),
    Op.XOR: lambda f, a, b: f.xor(a, b),
    Op.AND: lambda f, a, b: f.and_(a, b),
    Op.SLL: lambda f, a, b: f.shl(a, f.and_(b, _COUNT_MASK)),
    Op.SRL: lambda f, a, b: f.lshr(a, f.and_(b, _COUNT_MASK)),
    Op.SRA: lambda f, a, b: f.ashr(a, f.and_(b, _COUNT_MASK)),
    Op.SUB: lambda f, a, b: f.sub(a, b),
    Op.ADD: lambda f, a, b: f.add(a, b),
    Op.MUL: lambda f, a, b: f.mul(a, b),
    Op.NOT: lambda f, a, _b: f.not_(a),
    Op.MOV: lambda _f, a, _b: a,
}
# A division by 0 is not done; that of the lowest number by -1 only has a quotient, by `_signed_quotient`.
DIVISIONS: Final[Mapping[Op, Callable[[Function, Word, Word], Word]]] = {
    Op.SDIV: _signed_quotient,
    Op.UDIV: lambda f, a, b: f.udiv(a, b),
    Op.SREM: lambda f, a, b: f.srem(a, b),
    Op.UREM: lambda f, a, b: f.urem(a, b),
}
CONDITIONS: Final[Mapping[Op, Callable[[Translation], Condition]]] = {
    Op.BE: lambda t: t.condition("z"),
    Op.BNE: lambda t: t.f.fails(t.condition("z")),
    Op.BG: lambda t: t.f.fails(t.f.either(t.condition("z"), t.condition("n"))),
    Op.BGU: lambda t: t.f.fails(t.f.either(t.condition("c"), t.condition("z"))),
    Op.BGE: lambda t: t.f.fails(t.condition("n")),
    Op.BGEU: lambda t: t.f.fails(t.condition("c")),
    Op.BL: lambda t: t.condition("n"),
    Op.BLU: lambda t: t.condition("c"),
    Op.BLE: lambda t: t.f.either(t.condition("z"), t.condition("n")),
    Op.BLEU: lambda t: t.f.either(t.condition("c"), t.condition("z")),
}


def _arithmetic(t: Translation, i: Instruction) -> None:
    t.set(i.rd, ARITHMETIC[i.op](t.f, t.register(i.r1), t.register(i.r2)))


def _division(t: Translation, i: Instruction) -> None:
    a, b = t.register(i.r1), t.register(i.r2)
    impossible = t.f.eq(b, 0)
    if i.op is Op.SREM:
        overflows = t.f.both(t.f.eq(b, _MINUS_ONE), t.f.eq(a, _LOWEST))
        impossible = t.f.either(impossible, overflows)
    t.fault_if(impossible, DIVZERO, i.place)
    t.set(i.rd, DIVISIONS[i.op](t.f, a, b))


def _branch(t: Translation, i: Instruction) -> None:
    t.branch(CONDITIONS[i.op](t), i.label)


def _jump(t: Translation, i: Instruction) -> None:
    t.jump(i.label)


def _return(t: Translation, i: Instruction) -> None:
    t.f.ret(t.register(i.rd))
    t.f.at(t.f.label())


def _nothing(_t: Translation, _i: Instruction) -> None:
    pass


# Comparisons


def _compare(t: Translation, i: Instruction) -> None:
    a, b = t.register(i.r1), t.register(i.r2)
    negative = t.f.lshr(t.f.sub(a, b), _SIGN_BIT)
    t.conditions(n=negative, z=t.f.flag(t.f.eq(a, b)), c=t.f.flag(t.f.ult(a, b)))


def _test(t: Translation, i: Instruction) -> None:
    t.conditions(n=0, z=t.f.flag(t.f.eq(t.register(i.r1), 0)), c=0)


def _compare_strings(t: Translation, i: Instruction) -> None:
    difference = t.ask("compare", t.register(i.r1), t.register(i.r2))
    t.conditions(n=t.f.lshr(difference, _SIGN_BIT), z=t.f.flag(t.f.eq(difference, 0)), c=0)
    t.check(i.place)


# Constants


def _integer(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.difo.integers[i.index])


def _string(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.f.add(t.module.symbol(t.strings), i.index))


# Memory

# Every consumer may read all of kernel memory on FreeBSD: the check of access finds nothing.
_LOADERS: Final = {"LD": "load", "ULD": "load_user", "RLD": "load"}


def _load(t: Translation, i: Instruction) -> None:
    kind, size, signed = LOADS[i.op]
    value = t.ask(f"{_LOADERS[kind]}{size}", t.register(i.r1))
    t.check(i.place)
    t.set(i.rd, t.f.low(value, size, signed=signed))


def _store(t: Translation, i: Instruction) -> None:
    t.ask(f"write{STORES[i.op]}", t.register(i.rd), t.register(i.r1))
    t.check(i.place)


def _copy(t: Translation, i: Instruction) -> None:
    t.ask("copy", t.register(i.r1), t.register(i.r2), t.register(i.rd))
    t.check(i.place)


def _allocate(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.ask("allocate", t.register(i.r1)))
    t.check(i.place)


# The tuple stack, and subroutines


def _push(t: Translation, i: Instruction) -> None:
    depth = t.get("depth")
    t.fault_if(t.f.eq(depth, TUPLE_REGISTERS), TUPOFLOW, i.place)
    value, size = t.register(i.rd), t.register(i.r2)
    if i.op is Op.PUSHTV:
        _push_entry(t, depth, value, 0)
        return
    f = t.f
    unknown = f.ugt(size, SIZE_MAX)
    if i.r1 == TypeKind.STRING:
        length = t.ask("text", value, f.select(f.eq(size, 0), STRING_SIZE, size))
        unknown = f.eq(t.get("text"), 0)
        size = f.add(length, 1)
    with f.choice(unknown, likely=False) as (by_python, natively):
        with by_python:
            t.upcall(Upcall.PUSH_REFERENCE, i.r1, t.register(i.r2), value)
        with natively:
            _push_entry(t, depth, value, size)
    t.check(i.place)


def _push_entry(t: Translation, depth: Word, value: Word, size: Word) -> None:
    entry = t.f.add(t.tuple, t.f.mul(depth, ENTRY))
    t.f.store(entry, value)
    t.f.store(entry, size, _WORD)
    t.put("depth", t.f.add(depth, 1))


def _pop(t: Translation, _i: Instruction) -> None:
    depth = t.get("depth")
    t.put("depth", t.f.sub(depth, t.f.flag(t.f.ne(depth, 0))))


def _flush(t: Translation, _i: Instruction) -> None:
    t.put("depth", 0)


def _call(t: Translation, i: Instruction) -> None:
    name = subroutine_name(i.index)
    if name not in t.support:
        t.set(i.rd, t.upcall(Upcall.SUBROUTINE, i.index, t.register(i.rd)))
    elif i.index in WITHOUT_RESULT:
        t.ask(name)
    else:
        t.set(i.rd, t.ask(name))
    t.check(i.place)


OPERATIONS: Final[Mapping[Op, Operation]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(DIVISIONS, _division),
    **dict.fromkeys(CONDITIONS, _branch),
    **dict.fromkeys(LOADS, _load),
    **dict.fromkeys(STORES, _store),
    **VARIABLES,
    Op.BA: _jump,
    Op.RET: _return,
    Op.NOP: _nothing,
    Op.CMP: _compare,
    Op.TST: _test,
    Op.SCMP: _compare_strings,
    Op.SETX: _integer,
    Op.SETS: _string,
    Op.COPYS: _copy,
    Op.ALLOCS: _allocate,
    Op.PUSHTR: _push,
    Op.PUSHTV: _push,
    Op.POPTS: _pop,
    Op.FLUSHTS: _flush,
    Op.CALL: _call,
}


def translate(
    module: Module, name: str, difo: Difo, strings: str, surroundings: Surroundings, *, local: bool = False
) -> tuple[Function, bool]:
    """Write a DIF object as a function of the module.

    It takes the addresses of the enabling's words and of the arguments.  The flags of the firing
    are clear when it begins; after a fault it returns 0.  Return the function, and whether it may
    fault.
    """
    translation = Translation(module, name, difo, strings, surroundings, local=local)
    return translation.write(OPERATIONS), translation.faults
