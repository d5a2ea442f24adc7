"""The built-in variables that machine code reads without Python.

Their meaning is defined in `trapline.framework.dif.builtin`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.engine.hits.hit_steps import ARGUMENTS
from emu.native.operations import Value, Word
from trapline.framework.base.blocks import EcbWord
from trapline.framework.base.dif import Var
from trapline.framework.native.dif.translation import Translation
from trapline.framework.native.firing_words import UNREAD
from trapline.framework.native.support import SCALARS
from trapline.framework.native.upcall_code import Upcall

_WORD: Final = 8
# The arguments that have variables of their own (arg0 to arg9); a firing passes the first `ARGUMENTS`.
_NAMED: Final = 10


def read(t: Translation, variable: int) -> Word | None:
    """Write the code that reads a variable; None: Python reads it."""
    reader = READERS.get(variable)
    if reader is not None:
        return reader(t)
    name = SCALARS.get(variable)
    return t.f.call(t.module.external(name, 0)) if name is not None and name in t.support else None


def _argument(index: int) -> Callable[[Translation], Value]:
    return lambda t: t.f.load(t.arguments, _WORD * index)


def _of_enabling(word: EcbWord) -> Callable[[Translation], Value]:
    return lambda t: t.f.load(t.ecb, _WORD * word)


def _once(word: str, function: str) -> Callable[[Translation], Word | None]:
    """Return the writer for a time, which is read once for each enabling and kept in the firing."""

    def read_time(t: Translation) -> Word | None:
        if function not in t.support:
            return None
        known = t.f.variable(t.get(word))
        with t.f.when(t.f.eq(known.get(), UNREAD)):
            known.set(t.f.call(t.module.external(function, 0)))
            t.put(word, known.get())
        return known.get()

    return read_time


def _execname(t: Translation) -> Word | None:
    return t.f.call(t.module.external("name", 0)) if "name" in t.support else None


def _of_function(name: str, variable: Var) -> Callable[[Translation], Word | None]:
    """Return the writer for a variable of a hit function; Python reads it for other probes."""

    def read_variable(t: Translation) -> Word | None:
        if name not in t.support:
            return None
        found = t.f.variable(0)
        anchored = t.f.ne(t.f.load(t.ecb, _WORD * EcbWord.ANCHORED), 0)
        with t.f.choice(anchored, likely=True) as (known, other):
            with known:
                found.set(t.f.call(t.module.external(name, 0)))
            with other:
                found.set(t.upcall(Upcall.SCALAR, variable))
        return found.get()

    return read_variable


def _shared(name: str) -> Callable[[Translation], Word | None]:
    """Return the writer for a variable that is read by a function of its name."""
    return lambda t: t.f.call(t.module.external(name, 0)) if name in t.support else None


def _late_argument(index: Word) -> Callable[[Translation], Value]:
    """Return the writer for one of arguments 5 to 9, which may fault."""
    return lambda t: t.f.call(t.f.load(t.ecb, _WORD * EcbWord.LATE), index)


def argument_at(t: Translation, index: Word) -> Word:
    """Write the code that reads `args[index]`, which may fault; the index is usually a constant."""
    found = t.f.variable(0)
    with t.f.choice(t.f.ult(index, ARGUMENTS)) as (passed, beyond):
        with passed:
            found.set(t.f.load(t.f.add(t.arguments, t.f.mul(index, _WORD))))
        with beyond, t.f.choice(t.f.ult(index, _NAMED)) as (named, others):
            with named:
                found.set(_late_argument(index)(t))
            with others:
                found.set(t.upcall(Upcall.ELEMENT, Var.ARGS, index))
    return found.get()


def cpu(t: Translation) -> Word:
    """Write the code that reads the number of the CPU, of which most guests have one."""
    return t.f.call(t.module.external("cpu", 0)) if "cpu" in t.support else 0


# Variables whose readers may fault.
MAY_FAULT: Final = frozenset(range(Var.ARG5, Var.ARG9 + 1))
READERS: Final[Mapping[int, Callable[[Translation], Word | None]]] = {
    **{Var.ARG0 + index: _argument(index) for index in range(ARGUMENTS)},
    **{Var.ARG0 + index: _late_argument(index) for index in range(ARGUMENTS, _NAMED)},
    Var.EPID: _of_enabling(EcbWord.EPID),
    Var.ID: _of_enabling(EcbWord.PROBE),
    Var.PROBEPROV: _of_enabling(EcbWord.PROVIDER),
    Var.PROBEMOD: _of_enabling(EcbWord.MODULE),
    Var.PROBEFUNC: _of_enabling(EcbWord.FUNCTION),
    Var.PROBENAME: _of_enabling(EcbWord.NAME),
    Var.TIMESTAMP: _once("timestamp", "now"),
    Var.WALLTIMESTAMP: _once("walltimestamp", "wall"),
    Var.EXECNAME: _execname,
    Var.CALLER: _of_function("caller", Var.CALLER),
    Var.STACKDEPTH: _of_function("stackdepth", Var.STACKDEPTH),
    Var.UCALLER: _shared("ucaller"),
    Var.USTACKDEPTH: _shared("ustackdepth"),
    Var.CPU: cpu,
    Var.JID: lambda _t: 0,
    Var.JAILNAME: lambda t: t.module.symbol("jail_name"),
}
