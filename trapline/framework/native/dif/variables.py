"""Variables of a DIF object in machine code: built-in, of fixed place, and dynamic.

A variable of fixed place is a word of its array, or the address of its storage if it is kept by
reference.  Dynamic variables are in the hash table of `trapline.framework.native.dif.dynvars`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.operations import Word
from trapline.framework.base.blocks import DynamicWord
from trapline.framework.base.dif import USER_VARIABLE_BASE, Op, Var
from trapline.framework.base.dynvars import slot, variable_size
from trapline.framework.base.faults import DROP, ILLOP
from trapline.framework.base.program import DifVariable, Scope, TypeKind
from trapline.framework.base.variables import HEADER, NULL
from trapline.framework.dif.interpreter import Instruction
from trapline.framework.dif.operations import THREAD_KEY_BITS, THREAD_KEY_OFFSET
from trapline.framework.native.dif import builtins
from trapline.framework.native.dif.translation import Operation, Translation
from trapline.framework.native.upcall_code import Upcall

_WORD: Final = 8


def _load_global(t: Translation, i: Instruction) -> None:
    if i.index >= USER_VARIABLE_BASE:
        t.set(i.rd, _static(t, Scope.GLOBAL, i.index))
        return
    value = builtins.read(t, i.index)
    if value is None:
        value = t.upcall(Upcall.SCALAR, i.index)
        t.check(i.place)
    elif i.index in builtins.MAY_FAULT:
        t.check(i.place)
    t.set(i.rd, value)


def _load_local(t: Translation, i: Instruction) -> None:
    t.set(i.rd, _static(t, Scope.LOCAL, i.index) if i.index >= USER_VARIABLE_BASE else 0)


_STATICS: Final = {Scope.GLOBAL: "globals", Scope.LOCAL: "locals"}


def _static(t: Translation, scope: Scope, number: int) -> Word:
    """Load a variable of fixed place: a word, or the address of what is kept by reference."""
    if not t.is_reference(scope, number):
        return t.f.load(t.module.symbol(_STATICS[scope]), _WORD * slot(number))
    name = reference_symbol(scope, number)
    is_null = t.f.eq(t.f.load(t.module.symbol(name), size=1), NULL)
    return t.f.select(is_null, 0, t.f.add(t.module.symbol(f"{name}.dif"), HEADER))


def reference_symbol(scope: Scope, number: int) -> str:
    """Return the symbol of the storage of a variable by reference; with .dif its address of DIF."""
    return f"{_STATICS[scope]}.{slot(number)}"


def _store_static(t: Translation, i: Instruction) -> None:
    scope = Scope.GLOBAL if i.op is Op.STGS else Scope.LOCAL
    if not t.is_reference(scope, i.index):
        t.f.store(t.module.symbol(_STATICS[scope]), t.register(i.rd), _WORD * slot(i.index))
        return
    value, place = t.register(i.rd), t.module.symbol(reference_symbol(scope, i.index))
    with t.f.choice(t.f.eq(value, 0), likely=False) as (null, present):
        with null:
            t.f.store(place, NULL, size=1)
        with present:
            t.f.store(place, 0, size=1)
            kept = _keep(t, t.declared[scope, i.index], t.f.add(place, HEADER), value)
            with t.f.when(t.f.eq(kept, 0), likely=False):
                t.upcall(Upcall.STORE_STATIC, int(scope), i.index, value)
    t.check(i.place)


def _keep(t: Translation, variable: DifVariable, place: Word, value: Word) -> Word:
    """Copy a variable's new data: a string up to its NUL, others completely; 0: Python must do it."""
    function = "keep" if variable.type.kind == TypeKind.STRING else "bring"
    return t.ask(function, place, value, variable_size(variable))


# The functions that read elements of arrays.
_ARRAYS: Final = {int(Var.UREGS): "user_register", int(Var.REGS): "register"}


def _element(t: Translation, i: Instruction) -> None:
    index = t.register(i.r2)
    function = _ARRAYS.get(i.r1, "")
    if i.r1 == Var.ARGS:
        t.set(i.rd, builtins.argument_at(t, index))
    elif function in t.support:
        t.set(i.rd, t.ask(function, index))
    else:
        t.set(i.rd, t.upcall(Upcall.ELEMENT, i.r1, index))
    t.check(i.place)


def _no_thread_array(t: Translation, i: Instruction) -> None:
    t.fault_if(t.f.eq(0, 0), ILLOP, i.place)


_DYNAMIC: Final = {
    Op.LDTS: (Scope.THREAD, 0),
    Op.STTS: (Scope.THREAD, 0),
    Op.LDGAA: (Scope.GLOBAL, 1),
    Op.STGAA: (Scope.GLOBAL, 1),
    Op.LDTAA: (Scope.THREAD, 1),
    Op.STTAA: (Scope.THREAD, 1),
}


def _key(t: Translation, i: Instruction) -> tuple[Word, Word]:
    """Make the key of a dynamic variable; return where it is, and its size.

    The size is 0 if machine code cannot make it.
    """
    f = t.f
    scope, has_tuple = _DYNAMIC[i.op]
    depth = t.get("depth") if has_tuple else 0
    thread: Word = 0
    if scope is Scope.THREAD:
        thread = f.and_(f.add(t.ask("tid"), THREAD_KEY_OFFSET), THREAD_KEY_BITS)
    dynamic = t.module.symbol("dynamic")
    threads = int(scope is Scope.THREAD)
    regions = t.module.symbol("regions")
    size = t.ask("key", dynamic, regions, t.tuple, depth, slot(i.index), threads, thread)
    return f.load(dynamic, _WORD * DynamicWord.KEY), size


def _by_python(t: Translation, i: Instruction) -> bool:
    """Return whether Python does all of an operation on a dynamic variable."""
    scope, _has_tuple = _DYNAMIC[i.op]
    return scope is Scope.THREAD and "tid" not in t.support


def _load_dynamic(t: Translation, i: Instruction) -> None:
    scope, has_tuple = _DYNAMIC[i.op]

    def slow() -> Word:
        return t.upcall(Upcall.LOAD_DYNAMIC, int(scope), i.index, has_tuple)

    if _by_python(t, i):
        t.set(i.rd, slow())
        t.check(i.place)
        return
    f = t.f
    key, size = _key(t, i)
    result = f.variable(0)
    with f.choice(f.eq(size, 0), likely=False) as (unknown, known):
        with unknown:
            result.set(slow())
        with known:
            offset = t.ask("find", t.module.symbol("dynamic"), key, size)
            with f.when(f.ne(offset, 0)):
                result.set(_dynamic_value(t, scope, i.index, offset))
    t.check(i.place)
    t.set(i.rd, result.get())


def _dynamic_value(t: Translation, scope: Scope, number: int, offset: Word) -> Word:
    """Return the value at an offset: a word, or its address if it is kept by reference."""
    dynamic = t.module.symbol("dynamic")
    if t.is_reference(scope, number):
        return t.f.add(t.f.load(dynamic, _WORD * DynamicWord.BASE), offset)
    return t.f.load(t.f.add(t.f.load(dynamic, _WORD * DynamicWord.DATA), offset))


def _store_dynamic(t: Translation, i: Instruction) -> None:
    scope, has_tuple = _DYNAMIC[i.op]
    value = t.register(i.rd)

    def slow() -> None:
        t.upcall(Upcall.STORE_DYNAMIC, int(scope), i.index, has_tuple, value)

    if _by_python(t, i):
        slow()
        t.check(i.place)
        return
    f = t.f
    dynamic = t.module.symbol("dynamic")
    key, size = _key(t, i)
    unknown = f.eq(size, 0)
    variable = t.declared[scope, i.index]
    if t.is_reference(scope, i.index):
        # If the data cannot be read, Python must do all of it, because the variable is created first.
        finder = "text" if variable.type.kind == TypeKind.STRING else "reach"
        found = t.ask(finder, value, variable_size(variable))
        hidden = f.eq(t.get("text") if finder == "text" else found, 0)
        unknown = f.either(unknown, f.both(hidden, f.ne(value, 0)))
    with f.choice(unknown, likely=False) as (by_python, natively):
        with by_python:
            slow()
        with natively, f.choice(f.eq(value, 0)) as (gone, there):
            with gone:
                t.ask("remove", dynamic, key, size, builtins.cpu(t))
            with there:
                room = max(variable_size(variable), _WORD)
                offset = t.ask("store", dynamic, key, size, room, builtins.cpu(t))
                with f.choice(f.ne(offset, 0), likely=True) as (made, dropped):
                    with made:
                        place = f.add(f.load(dynamic, _WORD * DynamicWord.DATA), offset)
                        if t.is_reference(scope, i.index):
                            _keep(t, variable, place, value)
                        else:
                            f.store(place, value)
                    with dropped:
                        t.raise_flag(DROP)
    t.check(i.place)


VARIABLES: Final[Mapping[Op, Operation]] = {
    Op.LDGS: _load_global,
    Op.LDLS: _load_local,
    Op.STGS: _store_static,
    Op.STLS: _store_static,
    Op.LDGA: _element,
    Op.LDTA: _no_thread_array,
    Op.LDTS: _load_dynamic,
    Op.LDGAA: _load_dynamic,
    Op.LDTAA: _load_dynamic,
    Op.STTS: _store_dynamic,
    Op.STGAA: _store_dynamic,
    Op.STTAA: _store_dynamic,
}
