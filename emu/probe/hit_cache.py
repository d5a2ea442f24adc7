"""The hit cache: after Python has handled a hit, machine code handles the next ones.

The handler that claims an address describes its actions there (`emu.probe.trap.Hit`).  The engine's
table keeps that until something changes (`emu.engine.hits.tracepoints`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emu.displaced.frame import Frame
from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.engine.handlers import TrapTaker
from emu.engine.hits.hit_steps import Run, of_exception
from emu.engine.hits.tracepoint_blocks import EVERY
from emu.engine.state import HANDLED
from emu.probe.execute_plan import interpret
from emu.probe.trap import TrapHandler

# Does the rest of a hit, beginning with the plan whose memory was out of reach; answers DELIVER or HANDLED.
Rest = Callable[[int], int]


def _anywhere(address: int) -> tuple[int, int, int]:
    return address, EVERY, EVERY


class HitCache:
    """The hits of one chain of handlers that machine code may handle.

    `taker` takes the engine's breakpoints: nothing is stored while another one takes them.
    `by_space`: an address means something else in each address space.  Then the engine must know
    which thread runs (`Engine.note_thread`, `Engine.find_thread_at`), because a hit may depend on
    that too.
    """

    def __init__(
        self,
        engine: Engine,
        traps: TrapHandler,
        taker: TrapTaker,
        frame: Frame,
        *,
        by_space: bool = False,
    ) -> None:
        self._engine = engine
        self._tracepoints = engine.tracepoints
        self._traps = traps
        self._taker = taker
        self._frame = frame
        self.key: Callable[[int], tuple[int, int, int]] = engine.tracepoints.here if by_space else _anywhere
        """Returns what hits at an address are known by."""
        traps.watch(engine.tracepoints.clear)

    def store(self, address: int, answer: int = 0, plan: Plan | None = None, rest: Rest | None = None) -> None:
        """Let machine code serve the next hits at an address, if it can.

        `answer` is the answer of the handlers; `plan` is what was done instead of the displaced
        instruction, if they left that to their caller, and `rest` does it in Python.
        """
        key, known = self.key(address), self._tracepoints.known
        if key in known:  # first, because this is tested at every hit that Python serves
            return
        everywhere = (*key[:2], EVERY)
        if everywhere in known or self._engine.handlers.taker is not self._taker:
            return
        known[key] = None
        hit = self._traps.describe(address)
        if hit is None or hit.answer != answer:
            return
        plan, steps, rest = plan or hit.plan, hit.steps, rest or hit.rest
        if plan is not None:
            steps = (*steps, Run(plan.operations))
            rest = rest or partial(self._execute, plan)
        key = key if hit.by_thread else everywhere
        if hit.exception is not None:
            key = (of_exception(hit.exception, 0), EVERY, EVERY)
        known[key] = rest
        self._tracepoints.set(key, self._traps.core, self._frame, steps)

    def _execute(self, plan: Plan, address: int) -> int:
        """Execute a plan in Python."""
        interpret(plan, self._engine.isa, self._engine, address)
        return HANDLED

    def rest(self, address: int) -> Rest | None:
        """Return what completes a hit after machine code; None: the hit is not in the cache."""
        known, key = self._tracepoints.known, self.key(address)
        return known.get(key) or known.get((*key[:2], EVERY))
