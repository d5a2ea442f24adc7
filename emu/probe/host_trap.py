"""The host trap path: the emulator handles a breakpoint itself.

A kernel's vector, trap frame and stub take a few hundred instructions to do this. Here it happens
between two instructions of the guest: call the chain of handlers (`emu.probe.trap`), which fire the
probes; look up the plan of the displaced instruction, which is decided once and compiled once; and
execute the plan on the CPU's registers, which also advances the pc.

This describes the first hit. If the handler that claims an address describes its actions there, the
next hits are served by machine code (`emu.engine.hits.tracepoints`), until something changes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from emu.displaced.decision import DisplacedTable
from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.engine.handlers import TrapTaker
from emu.engine.state import DELIVER, HANDLED, Word
from emu.probe.execute_plan import interpret
from emu.probe.hit_cache import HitCache, Rest
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.probe.trap_frames import LiveFrame
from emu.support.words import BadAddressError


class _Displaced(NamedTuple):
    """A displaced instruction, decided."""

    plan: Plan
    native: int
    """The answer that makes machine code carry its plan out; 0: Python must do that."""


class HostTrap(TrapTaker):
    """Takes the breakpoints of one engine, once it is attached; a guest overrides what is its own.

    A breakpoint below `lowest` is not a kernel's. `table` replaces the ISA's table of displaced
    instructions.
    """

    takes_user_breakpoints = False
    """Whether `user_breakpoint` takes those below `lowest`; else the guest's kernel gets them."""

    def __init__(
        self,
        engine: Engine,
        traps: TrapHandler,
        patcher: Patcher,
        *,
        lowest: int = 0,
        table: DisplacedTable | None = None,
    ) -> None:
        self.frame = LiveFrame(engine, trapped=True)
        self._engine = engine
        self._traps = traps
        self._patcher = patcher
        self._lowest = lowest
        self._table = table or engine.isa.stub
        self._decided: dict[tuple[int, int], _Displaced | None] = {}
        self._latest: _Displaced | None = None
        self._native = True
        self._hit_cache = HitCache(engine, traps, self, self.frame)
        patcher.on_change = engine.tracepoints.clear

    # -- for guests to override

    def unclaimed(self, address: int) -> int:  # noqa: ARG002  an interface
        """Take a breakpoint that no handler claims: return DELIVER or HANDLED, or raise."""
        return DELIVER

    def faulted(self, address: int, error: BadAddressError) -> int:
        """Take the fault of a displaced instruction: raise, or return DELIVER or HANDLED.

        The registers are as they were before that instruction.
        """
        raise NotImplementedError

    def user_breakpoint(self, address: int) -> int:  # noqa: ARG002  an interface
        """Take a breakpoint below `lowest`."""
        return DELIVER

    def user_rest(self, address: int) -> Rest | None:  # noqa: ARG002  an interface
        """Return what completes a hit below `lowest` that machine code could not complete."""
        return None

    # -- the path of a breakpoint

    def attach(self) -> None:
        """Make the engine call this object at its breakpoints."""
        self._engine.handlers.taker = self
        self._engine.counter.state[Word.DELIVERED] = 0 if self.takes_user_breakpoints else self._lowest

    def breakpoint(self, address: int) -> int:
        """Take the breakpoint at `address`.

        Returns `DELIVER`, `HANDLED`, or a plan for machine code to execute.

        The pc is at the breakpoint.
        """
        if address < self._lowest:
            return self.user_breakpoint(address)
        try:
            rval = self._traps.invop(address, self.frame)  # fires the probes
        except BadAddressError as error:  # the handler executes the plan itself
            return self._fault(address, error)
        if self.frame.moved:
            self.frame.moved = False
            if self._native:
                self._hit_cache.store(address)
            return HANDLED
        if not rval:
            return self.unclaimed(address)
        try:
            displaced = self._decided[address, rval]
        except KeyError:
            displaced = self._decided[address, rval] = self._decide(address, rval)
        if displaced is None:
            return self.unclaimed(address)
        if displaced.native:
            self._hit_cache.store(address, rval, displaced.plan, partial(self._execute, displaced))
            self._latest = displaced
            return displaced.native
        return self._execute(displaced, address)

    def take(self, address: int) -> int:
        """Take a trap that is a breakpoint, but arrives as another exception.

        The `trap` of a guest calls it.
        """
        answer = self.breakpoint(address)
        return answer if answer in {DELIVER, HANDLED} else self.late(address)

    def use_python(self) -> None:
        """Execute plans in Python from now on: they are complete when `breakpoint` returns."""
        self._native = False
        self._decided.clear()
        self._engine.tracepoints.clear()

    def late(self, address: int) -> int:
        """Execute a plan whose memory machine code could not reach."""
        rest = self._hit_cache.rest(address) if address >= self._lowest else self.user_rest(address)
        if rest is not None:
            try:
                return rest(address)
            except BadAddressError as error:
                return self._fault(address, error)
        assert self._latest is not None
        return self._execute(self._latest, address)

    def _execute(self, displaced: _Displaced, address: int) -> int:
        try:
            interpret(displaced.plan, self._engine.isa, self._engine, address)
        except BadAddressError as error:
            return self._fault(address, error)
        return HANDLED

    def _fault(self, address: int, error: BadAddressError) -> int:
        self._engine.pc = address
        return self.faulted(address, error)

    def _decide(self, address: int, rval: int) -> _Displaced | None:
        saved = int.from_bytes(self._patcher.original(address, 4), "little")
        plan = self._table.invop(rval, saved, address)
        if plan is None:
            return None
        return _Displaced(plan, self._engine.plan(plan) if self._native else 0)
