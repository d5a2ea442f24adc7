"""$target on the kernel guest: the first process of -p, or the first that the commands of -c start.

The guest runs to the start of that process when its number is requested, not before: a trace that
does not use it sees all of the guest from process 1 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emu.guest.base import GuestError
from emu.guest.kernel.grab import INIT, grab, is_command, run_to_start
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.user.processes import Process
from emu.guest.kernel.user.programs import KernelGuestObserver

_NONE = 0


@dataclass(slots=True, eq=False)
class KernelTarget(KernelGuestObserver):
    """The process that a trace is about."""

    guest: KernelGuest
    command: str = ""
    """The command of -c for the guest's shell; "": none."""
    pid: int | None = None
    """The process of -p."""
    evaltime: str = "main"
    """The point in its program's start at which probes are created (option evaltime)."""
    _process: Process | None = None
    _last: Process | None = None
    """The process with which the trace ends: of -c the shell, which has more to do in `a | b`."""
    _told: bool = False

    def number(self) -> int:
        """Return $target, 0 without -c and -p.  Raises `emu.guest.base.GuestError`."""
        if self._process is None and (self.command or self.pid is not None):
            self._process = self._grab()
        return self._process.pid if self._process else _NONE

    def _grab(self) -> Process:
        wanted: Callable[[Process], bool] = is_command
        if self.pid is not None:
            wanted = lambda process: process.pid == self.pid  # noqa: E731
        process = grab(self.guest, wanted)
        if process is None:
            if self.pid is not None:
                raise GuestError(f"failed to grab process {self.pid}: the guest never has a process of that number")
            raise GuestError(f"-c '{self.command}': the guest's shell ran no program for it")
        if self.evaltime != "exec" and process.pid != INIT:
            run_to_start(self.guest, process, main=self.evaltime != "preinit")
        self._last = process if self.pid is not None else process.parent
        self.guest.userland.watch(self)
        return process

    def exited(self, process: Process) -> None:
        """Make the current run return soon: the trace ends with its process, or with the command."""
        if process is self._last:
            self.guest.interrupt()

    def ended(self) -> Sequence[str]:
        """Return, once, that the process has ended, and the command of which it was the first."""
        if self._process is None or self._last is None or self._last.alive or self._told:
            return ()
        self._told = True
        return (f"pid {self._process.pid} has exited",)
