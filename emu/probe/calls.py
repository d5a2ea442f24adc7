"""Calling a function of the guest: arguments are passed by its calling convention."""

from __future__ import annotations

from collections.abc import Sequence

from emu.engine.engine import Engine
from emu.engine.errors import EngineError


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
