"""Machine code that finds arguments 5 to 9 of a firing (`emu.native.guest.LateArguments`).

`emu.trap_frames` has the same for Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.cpu_core import CoreWord
from emu.engine.hit_steps import ARGUMENTS
from emu.engine.tracepoint_blocks import Firing
from emu.isa.base import Isa
from emu.native.builder import Callee, Function
from emu.native.guest import LateArguments, Writer, need
from emu.native.values import Value, Word

_WORD: Final = 8


def late_argument_code(isa: Isa) -> dict[str, Writer]:
    """Return the functions that need no more than an engine.

    Only while machine code serves a hit is the interrupted context that of the stopped CPU: the
    others then read it.
    """
    return {
        LateArguments.NONE: _none,
        LateArguments.FUNCTION: _of_function(isa, isa.calling.stack_arguments // isa.word),
        LateArguments.CALL: _of_function(isa, 0),
        LateArguments.HIT: _of_hit,
    }


def read_function_argument(f: Function, slow: Callable[[], Word], isa: Isa, index: Word, skipped: int) -> None:
    """Return an argument of a function, by the registers of the stopped CPU.

    `skipped` is the number of words on the stack before the first argument there.
    """
    registers = isa.calling.arguments

    def held(name: str) -> Value:
        return f.load(f.module.symbol("cpu_words"), _WORD * isa.registers.slots[name])

    with f.cases(index) as case:
        for number, name in enumerate(registers):
            with case(number):
                f.ret(held(name))
    words = f.add(f.sub(index, len(registers)), skipped)
    address = f.and_(f.add(held(isa.registers.sp), f.mul(words, isa.word)), isa.address_mask)
    found = f.variable(0)
    with f.choice(f.ult(address, isa.kernel_start)) as (user, kernel):
        with user:
            found.set(f.call(Callee("user_place"), address, isa.word))
        with kernel:
            found.set(f.call(Callee("kernel_place"), address, isa.word))
    need(f, slow, found.get())
    f.ret(f.load(found.get(), size=isa.word))


def _firing(f: Function, slow: Callable[[], Word]) -> Value:
    """Return the address of the current hit's `Firing`; Python is called if there is none."""
    firing = f.load(f.module.symbol("core"), _WORD * CoreWord.FIRING)
    need(f, slow, firing)
    return firing


def _none(f: Function, _slow: Callable[[], Word]) -> None:
    f.ret(0)


def _of_function(isa: Isa, skipped: int) -> Writer:
    def write(f: Function, slow: Callable[[], Word]) -> None:
        _firing(f, slow)
        read_function_argument(f, slow, isa, f.parameters[0], skipped)

    return write


def _of_hit(f: Function, slow: Callable[[], Word]) -> None:
    late = f.load(_firing(f, slow), Firing.offset("late"))
    need(f, slow, late)
    f.ret(f.call(f.module.external("firing_argument", 2), late, f.sub(f.parameters[0], ARGUMENTS)))
