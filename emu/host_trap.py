"""The host trap path: a breakpoint answered by the emulator itself, at once.

What a kernel's vector, trap frame and stub do in a few hundred instructions happens here between
two of the guest's: ask the chain of handlers, look up the plan for the displaced instruction
(decided once, compiled once), carry it out on the CPU's registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emu.displaced import DisplacedTable, compile_plan
from emu.engine.engine import Engine
from emu.engine.state import DELIVER, HANDLED
from emu.frame import LiveFrame
from emu.guest.base import BadAddressError
from emu.patcher import Patcher
from emu.trap import TrapHandler


class _Displaced(NamedTuple):
    """A displaced instruction, decided."""

    native: int
    """What to answer so that native code carries its plan out; 0: Python has to."""
    run: Callable[[Engine, int], None]


class HostTrap:
    """Takes the breakpoints of one engine at addresses from `lowest` on; others are delivered.

    `unclaimed(address)` is told of a breakpoint that no handler claims, and answers `DELIVER` or
    `HANDLED`, or raises.  `faulted(address, error)` is told that a displaced instruction met an
    invalid address, and raises, or answers; the registers are as they were before that instruction.
    `table` says what displaced instructions do, if not the ISA's.
    """

    def __init__(
        self,
        engine: Engine,
        traps: TrapHandler,
        patcher: Patcher,
        *,
        unclaimed: Callable[[int], int],
        faulted: Callable[[int, BadAddressError], int],
        lowest: int = 0,
        table: DisplacedTable | None = None,
    ) -> None:
        self.frame = LiveFrame(engine, engine.isa.traps.pc_after, trapped=True)
        self._engine = engine
        self._invop = traps.invop
        self._patcher = patcher
        self._unclaimed = unclaimed
        self._faulted = faulted
        self._lowest = lowest
        self._table = table or engine.isa.stub
        self._pc_after = engine.isa.traps.pc_after
        self._plans: dict[tuple[int, int], _Displaced | None] = {}
        self._displaced: _Displaced | None = None
        self._native = True

    def attach(self) -> None:
        """Have the engine bring its breakpoints here."""
        self._engine.on_breakpoint = self.breakpoint
        self._engine.on_late = self._late

    def breakpoint(self, pc: int) -> int:
        """Take a breakpoint that left the CPU at `pc`."""
        address = pc - self._pc_after
        if address < self._lowest:
            return DELIVER
        rval = self._invop(address, self.frame)
        if self.frame.moved:
            self.frame.moved = False
            return HANDLED
        if not rval:
            return self._unclaimed(address)
        try:
            displaced = self._plans[address, rval]
        except KeyError:
            displaced = self._plans[address, rval] = self._decide(address, rval)
        if displaced is None:
            return self._unclaimed(address)
        if displaced.native:
            self._displaced = displaced
            return displaced.native
        return self._carry_out(displaced, address)

    def take(self, address: int) -> int:
        """Take a trap at `address` that is a breakpoint in all but the exception: the engine's `on_trap`."""
        rval = self._invop(address, self.frame)
        displaced = self._decide(address, rval) if rval else None
        return self._unclaimed(address) if displaced is None else self._carry_out(displaced, address)

    def use_python(self) -> None:
        """Carry plans out in Python from now on, so that they are done when `breakpoint` is."""
        self._native = False
        self._plans.clear()

    def _late(self, pc: int) -> int:
        """Carry out the latest plan: native code could not reach the memory."""
        assert self._displaced is not None
        return self._carry_out(self._displaced, pc - self._pc_after)

    def _carry_out(self, displaced: _Displaced, address: int) -> int:
        try:
            displaced.run(self._engine, address)
        except BadAddressError as error:
            self._engine.pc = address
            return self._faulted(address, error)
        return HANDLED

    def _decide(self, address: int, rval: int) -> _Displaced | None:
        isa = self._engine.isa
        saved = int.from_bytes(self._patcher.original(address, 4), "little")
        plan = self._table.invop(rval, saved, address)
        if plan is None:
            return None
        return _Displaced(self._engine.plan(plan) if self._native else 0, compile_plan(plan, isa))
