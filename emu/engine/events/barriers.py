"""Watching the instructions that concern code which a CPU has written (`emu.isa.fetch`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from emu.engine.engine import Engine
from emu.isa.disassembly import instructions
from emu.isa.fetch import Barrier


def watch_barriers(engine: Engine, parts: Iterable[tuple[int, bytes]], call: Callable[[Barrier], None]) -> None:
    """Call a function for each barrier in some code (address, bytes) that the CPU executes.

    Use it before that code is translated.
    """
    isa, served = engine.isa, {}
    for address, code in parts:
        for offset, size in instructions(isa.instruction_length, code):
            barrier = isa.fetching.barrier(code[offset : offset + size])
            if barrier.effect:
                engine.code.on_code(address + offset, partial(call, barrier))
                served[address + offset + size] = barrier
    before = engine.emulated.served

    def after() -> None:
        # The host executes emulated instructions such as cpuid, which are never translated.
        before()
        barrier = served.get(engine.pc)
        if barrier is not None:
            call(barrier)

    engine.emulated.served = after
