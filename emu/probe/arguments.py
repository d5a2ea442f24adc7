"""The arguments and results of functions: their locations for machine code, and a call's.

`emu.displaced.frame` has the locations for Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from emu.engine.engine import Engine
from emu.engine.errors import EngineError
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


def pass_arguments(engine: Engine, arguments: Sequence[int]) -> None:
    """Set the arguments of the function that is about to be entered; sp is as on its entry.

    Raises `EngineError` if the convention passes arguments in registers only, and has too few.
    """
    isa = engine.isa
    registers = isa.calling.arguments
    if registers and len(arguments) > len(registers):
        raise EngineError(f"{len(arguments)} arguments: only {len(registers)} are passed in registers")
    for name, value in zip(registers, arguments, strict=False):
        engine.write_register(name, value & isa.address_mask)
    place = engine.read_register(isa.registers.sp) + isa.calling.stack_arguments
    for value in arguments[len(registers) :]:
        engine.store(place, isa.word, value)
        place += isa.word
