"""The locations of functions' arguments and results, for machine code that reads them.

`emu.displaced.frame` has the same for Python.
"""

from __future__ import annotations

from functools import cache

from emu.engine.hits.hit_steps import ARGUMENTS, Argument, InMemory, Register
from emu.isa.base import Isa
from emu.native.guest import LateArguments


def late_arguments(isa: Isa) -> LateArguments:
    """Return where `Frame.argument` finds argument 5 and up, as a provider's `late_arguments`."""
    return LateArguments.FUNCTION if isa.registers.link is None else LateArguments.NONE


@cache
def entry_arguments(isa: Isa) -> tuple[Argument, ...]:
    """Return the first five integer arguments, as on entry to a function (`Frame.arguments`)."""
    return function_arguments(isa, isa.calling.arguments[:ARGUMENTS], isa.calling.stack_arguments // isa.word)


@cache
def function_arguments(isa: Isa, registers: tuple[str, ...], first: int) -> tuple[Argument, ...]:
    """Return registers; without them five words of the stack from sp + `first` words on."""
    if registers:
        return tuple(map(Register, registers))
    return tuple(InMemory(isa.registers.sp, isa.word * (first + place), isa.word) for place in range(ARGUMENTS))


@cache
def results(isa: Isa) -> tuple[Register, ...]:
    """Return the two result registers (`Frame.results`)."""
    return tuple(Register(name) for name in isa.calling.results)
