"""Probes that the kernel calls, `dtrace_probe(id, arg0, ... arg4)`, in machine code.

The first call of a probe goes to Python; the next ones find its `Firing` in a table by its id.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from emu.engine.hits.hit_steps import ARGUMENTS, Argument, InMemory, Register
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.hits.watched import Calls, Watched, WatchKind
from emu.guest.kernel.view import KernelView

# The initial number of ids in the table.
_SIZE: Final = 1 << 12


class ProbeCalls:
    """The probes of one guest's kernel."""

    def __init__(self, guest: KernelView) -> None:
        self._guest = guest
        core = guest.traps.core
        guest.engine.tracepoints.calling = core
        self._calls = Calls(core.address, frames=ctypes.addressof(guest.frames))
        self.watched = Watched(WatchKind.CALL, calls=self._calls.address)
        """For the hook of `dtrace_probe`."""
        self._arguments = self._locate()
        self._known: dict[int, Firing] = {}
        self._table: Any = None
        self._grow(_SIZE)
        guest.probe_calls_changed = self.forget

    def _locate(self) -> list[Argument]:
        """Return the locations of the arguments after the id."""
        isa = self._guest.isa
        calling = isa.calling
        if calling.arguments:
            return [Register(name) for name in calling.arguments[1 : 1 + ARGUMENTS]]
        first = calling.stack_arguments + isa.word
        return [InMemory(isa.registers.sp, first + isa.word * place, isa.word) for place in range(ARGUMENTS)]

    def learn(self, probe_id: int) -> None:
        """Let machine code fire a probe from now on, if it can."""
        if probe_id in self._known:
            return
        called = self._guest.describe_probe(probe_id)
        if not called.runs:
            return
        firing = Firing(called.runs, 1, frames=0 if called.frames is None else called.frames + 1)
        self._guest.engine.tracepoints.locate(firing, self._arguments)
        self._known[probe_id] = firing
        if probe_id >= self._calls.limit:
            self._grow(2 * probe_id)
        self._table[probe_id] = firing.address

    def forget(self) -> None:
        """Let Python fire all probes again."""
        self._known = {}
        self._grow(_SIZE)

    def _grow(self, size: int) -> None:
        self._table = (ctypes.c_uint64 * size)()
        for probe_id, firing in self._known.items():
            if probe_id < size:
                self._table[probe_id] = firing.address
        self._calls.firings, self._calls.limit = ctypes.addressof(self._table), size
