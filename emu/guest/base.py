"""The interface of a traced system: memory, threads, symbols, stacks and time.

The D framework reads a guest only through `Guest`, so a kernel guest, a Linux guest and a fake in a
test are the same to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from emu.guest.abilities import Abilities
from emu.isa.base import Isa
from emu.support.immutable import immutable


class GuestError(Exception):
    """A guest that cannot continue.  `str()` is one line; `report` may say more."""

    def report(self) -> str:
        """Return everything known about it, in several lines."""
        return str(self)


@immutable
class Thread:
    """The thread a CPU is running, as `curthread` and `curproc` describe it."""

    address: int
    """Address of the kernel's thread structure (D's curthread); 0 where there is none."""
    tid: int
    pid: int
    ppid: int
    execname: str
    execargs: str = ""
    uid: int = 0
    gid: int = 0
    errno: int = 0


@immutable
class Location:
    """An address as module, symbol and offset; symbol is "" if the module has none there."""

    module: str
    symbol: str
    offset: int


class RunState(Enum):
    """The reason why `Guest.run` returned."""

    RUNNING = "running"
    """The deadline was reached, or `Guest.interrupt` was called; the guest can continue."""
    FINISHED = "finished"
    """The guest powered off, or its process ended."""


class Guest(Protocol):
    """A traced system.  Addresses are guest virtual; times are virtual nanoseconds."""

    isa: Isa

    @property
    def cpu(self) -> int:
        """Number of the CPU that is running (D's cpu)."""
        ...

    @property
    def abilities(self) -> Abilities:
        """The abilities of this guest beyond this interface."""
        ...

    def now(self) -> int:
        """Nanoseconds since the machine started (D's timestamp)."""
        ...

    def wall(self) -> int:
        """Nanoseconds since 1970-01-01 UTC (D's walltimestamp)."""
        ...

    def thread(self) -> Thread:
        """Return the current thread."""
        ...

    def load(self, address: int, size: int) -> bytes:
        """Read kernel memory.  Raises `BadAddressError`."""
        ...

    def user_load(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        ...

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory of the current process (copyout).  Raises `BadAddressError`."""
        ...

    def kernel_stack(self) -> Sequence[int]:
        """Return the kernel pcs of the interrupted context, its own included, innermost first."""
        ...

    def user_stack(self) -> Sequence[int]:
        """Return the user pcs of the current thread, innermost first."""
        ...

    def locate(self, address: int) -> Location | None:
        """Name a kernel address; None if no module contains it."""
        ...

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of process `pid` (None: the current one); None if no object contains it.

        The consumer names addresses that a process has recorded earlier, so the process may not be
        running, or may have ended: None then.
        """
        ...

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: forever), or until the guest ends.

        Raises `GuestError`.
        """
        ...

    def interrupt(self) -> None:
        """Make the current `run` return soon, from a probe or a signal handler."""
        ...
