"""Machine code that finds arguments 5 to 9 of a firing (`emu.native.guest.LateArguments`).

`emu.probe.trap_frames` has the same for Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.engine.hits.hit_steps import ARGUMENTS
from emu.engine.hits.tracepoint_blocks import Firing
from emu.isa.base import Isa
from emu.native.builder import Callee, Function
from emu.native.guest import LateArguments, Writer, need
from emu.native.operations import Value, Word

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


def live_register(f: Function, isa: Isa, name: str) -> Value:
    """Load a register of the stopped CPU."""
    return f.load(f.module.symbol("cpu_words"), _WORD * isa.registers.slots[name])


def read_function_argument(
    f: Function,
    slow: Callable[[], Word],
    isa: Isa,
    index: Word,
    skipped: int,
    register: Callable[[Function, Isa, str], Value] = live_register,
) -> None:
    """Return an argument of a function, by the registers that `register` loads.

    `skipped` is the number of words on the stack before the first argument there.
    """
    registers = isa.calling.arguments
    held = partial(register, f, isa)
    with f.cases(index) as case:
        for number, name in enumerate(registers):
            with case(number):
                f.ret(held(name))
    words = f.add(f.sub(index, len(registers)), skipped)
    address = f.and_(f.add(held(isa.registers.sp), f.mul(words, isa.word)), isa.address_mask)
    found = f.variable(0)
    with f.choice(f.ult(address, isa.kernel_start)) as (user, kernel):
        with user:
            found.set(f.call(Callee("user_pointer"), address, isa.word))
        with kernel:
            found.set(f.call(Callee("kernel_pointer"), address, isa.word))
    need(f, slow, found.get())
    f.ret(f.load(found.get(), size=isa.word))


def _firing(f: Function, slow: Callable[[], Word], words: Sequence[CoreWord] = (CoreWord.FIRING,)) -> Value:
    """Return the address of the current `Firing`, of a hit; Python is called if there is none."""
    firing = f.word(0)
    for word in words:
        firing = f.or_(firing, f.load(f.module.symbol("core"), _WORD * word))
    need(f, slow, firing)
    return firing


def of_programs(isa: Isa, register: Callable[[Function, Isa, str], Value]) -> dict[str, Writer]:
    """Return the functions that read arguments of functions of a program, too.

    The program is stopped in the kernel, which has kept its registers: `register` loads one.
    """

    def write_for(skipped: int) -> Writer:
        def write(f: Function, slow: Callable[[], Word]) -> None:
            core, index = f.module.symbol("core"), f.parameters[0]
            with f.when(f.ne(f.load(core, _WORD * CoreWord.FIRING), 0)):
                read_function_argument(f, slow, isa, index, skipped)
            need(f, slow, f.load(core, _WORD * CoreWord.ASIDE))
            read_function_argument(f, slow, isa, index, skipped, register)

        return write

    first = isa.calling.stack_arguments // isa.word
    return {LateArguments.FUNCTION: write_for(first), LateArguments.CALL: write_for(0)}


def _none(f: Function, _slow: Callable[[], Word]) -> None:
    f.ret(0)


def _of_function(isa: Isa, skipped: int) -> Writer:
    def write(f: Function, slow: Callable[[], Word]) -> None:
        _firing(f, slow)
        read_function_argument(f, slow, isa, f.parameters[0], skipped)

    return write


def _of_hit(f: Function, slow: Callable[[], Word]) -> None:
    # Where the arguments are is known of the context of another CPU, too.
    late = f.load(_firing(f, slow, (CoreWord.FIRING, CoreWord.ASIDE)), Firing.offset("late"))
    need(f, slow, late)
    f.ret(f.call(f.module.external("firing_argument", 2), late, f.sub(f.parameters[0], ARGUMENTS)))
