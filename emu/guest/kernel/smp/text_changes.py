"""Changes of the code of a kernel that several CPUs execute, by each method of a real system.

| method | while the bytes are written | system |
| --- | --- | --- |
| stop-machine | no CPU runs | this simulator |
| rendezvous | all CPUs wait at a rendezvous | FreeBSD sys/kern/kern_sdt.c |
| int3-first | all run; a breakpoint guards the bytes | Linux arch/x86/kernel/alternative.c |

The other two are functions of the guest, which interrupt its CPUs and take time on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final, Protocol

from emu.displaced.frame import Frame
from emu.guest.kernel.gates import Gates
from emu.guest.kernel.view import KernelView
from emu.probe.text_poke import Step, breakpoint_first
from emu.probe.trap import Served

# The function that each CPU calls at a rendezvous, once all have come: as at that of the kernel's start.
_AT_RENDEZVOUS: Final = "ap_started"


class Patching(Enum):
    """How the kernel's code is changed."""

    STOP_MACHINE = "stop-machine"
    RENDEZVOUS = "rendezvous"
    INT3_FIRST = "int3-first"


class Running(Protocol):
    """The interface of a guest with several CPUs for this module."""

    gates: Gates
    soon: Callable[[Callable[[], object]], None]
    """Calls a function between two runs."""

    def call_beside(self, name: str, *arguments: int) -> None:
        """Let this CPU call a function of the kernel, while all CPUs run."""
        ...


# (change, the address where the changed code continues)
TextChange = Callable[[Callable[[], object], int], object]


def changes_of(guest: KernelView, running: Running, method: Patching) -> TextChange:
    """Return what changes the code of a guest; call it between two runs."""
    match method:
        case Patching.STOP_MACHINE:
            return lambda change, _continues: change()
        case Patching.RENDEZVOUS:
            return _Rendezvous(guest, running).change
        case Patching.INT3_FIRST:
            return _BreakpointFirst(guest, running).change


class _Rendezvous:
    """One CPU calls smp_rendezvous; the first that goes on from there makes the change."""

    def __init__(self, guest: KernelView, running: Running) -> None:
        self._running = running
        self._action = guest.image.symbol(_AT_RENDEZVOUS).value
        self._open: list[Callable[[], object]] = []
        """The changes that wait for the CPUs."""
        guest.engine.code.on_code(self._action, self._have_come)

    def change(self, change: Callable[[], object], _continues: int) -> None:
        self._open.append(change)
        self._running.call_beside("smp_rendezvous", self._action, 0)
        self._make()  # the guest has ended before

    def _have_come(self) -> None:
        if self._open:
            self._running.soon(self._make)

    def _make(self) -> None:
        while self._open:
            self._open.pop(0)()


class _BreakpointFirst:
    """One CPU calls smp_text_poke_batch_finish, which asks for each step."""

    def __init__(self, guest: KernelView, running: Running) -> None:
        self._guest = guest
        self._running = running
        self._steps: tuple[Step, ...] = ()
        self._written = 0
        self._continues = 0
        self._open: list[tuple[Callable[[], object], int]] = []
        """The change that is made, and those that wait for its end."""
        running.gates.serve("gate_text_poke", self._asked)

    def change(self, change: Callable[[], object], continues: int) -> None:
        self._open.append((change, continues))
        if len(self._open) > 1:  # asked for during another change, which the guest is making
            return
        with self._guest.patcher.written_by(self._poke):
            while self._open:
                change, self._continues = self._open[0]
                try:
                    change()
                finally:
                    self._open.pop(0)

    def _poke(self, address: int, data: bytes) -> None:
        """Write bytes in steps (text_poke_bp)."""
        self._steps, self._written = breakpoint_first(self._guest.isa, address, data), 0
        # Bytes that begin with another tracepoint's breakpoint are guarded by its handler.
        guarded = len(self._steps) > 1 and not data.startswith(self._steps[0].data)
        if guarded:
            self._guest.traps.add(self._invop, self._describe)
        try:
            self._running.call_beside("smp_text_poke_batch_finish", len(self._steps))
            self._write_until(len(self._steps))  # the guest has ended before
        finally:
            if guarded:
                self._guest.traps.remove(self._invop)

    def _asked(self, step: int, *_: int) -> None:
        self._running.soon(partial(self._write_until, step + 1))

    def _write_until(self, count: int) -> None:
        for step in self._steps[self._written : count]:
            self._guest.engine.write_code(step.address, step.data)
        self._written = max(self._written, count)

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        """Do what the new instruction does instead of the breakpoint (poke_int3_handler)."""
        if address != self._steps[0].address:
            return 0
        traps = self._guest.isa.traps
        frame.go_to(self._continues, traps.moved_adds)
        return traps.moved

    def _describe(self, address: int) -> Served | None:
        return Served.PYTHON if address == self._steps[0].address else None
