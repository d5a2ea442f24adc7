"""The interface of a traced system: memory, threads, symbols, stacks and time.

The D framework reads a guest only through `Guest`, so a kernel guest, a Linux guest and a fake in a
test are the same to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from emu.displaced.frame import NamedRegisters
from emu.elf.source.inlined import SourceFrame
from emu.isa.base import Isa
from emu.native.guest import GuestCode
from emu.support.immutable import immutable


@immutable
class Lock:
    """The state of a lock of the kernel (FreeBSD struct lock_class: lc_owner, lc_flags)."""

    held: bool
    owner: int
    """Address of the thread that holds it exclusively; 0: no thread holds it, or only readers do."""
    spins: bool
    """Whether a waiting thread spins instead of sleeping."""


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """Functions of a guest; None: it cannot do this, and a D program that needs it is told so.

    A destructive action that the guest cannot do faults (illegal operation); chill() without a
    clock that can be advanced only counts.
    """

    thread_time: Callable[[], int] | None = None
    """Returns the nanoseconds that the current thread has been on a CPU: vtimestamp."""
    user_frame: Callable[[], NamedRegisters | None] | None = None
    """Returns the registers with which the current thread left user mode: uregs[]."""
    parent: Callable[[int], int | None] | None = None
    """Returns the parent of a process, None at the root: progenyof()."""
    interrupt_level: Callable[[], int] | None = None
    """Returns the number of interrupts that the current thread is serving: ipl."""
    open_file: Callable[[int], int] | None = None
    """Returns the address of an open file of the current process, 0: it is not open; getf()."""
    lock: Callable[[int], Lock | None] | None = None
    """Returns the state of a lock, None: it is not one; raises `BadAddressError`.  mutex_owned()
    and the like."""
    signal: Callable[[int], None] | None = None
    """Sends a signal to the current process: raise()."""
    stop: Callable[[], None] | None = None
    """Stops the current process: stop()."""
    panic: Callable[[str], None] | None = None
    """Makes the guest panic: panic()."""
    breakpoint: Callable[[], None] | None = None
    """Enters the debugger: breakpoint()."""
    chill: Callable[[int], None] | None = None
    """Lets nanoseconds pass: chill()."""
    source: Callable[[int, int | None], Sequence[SourceFrame]] | None = None
    """Returns the functions and lines in the source of an instruction of a process (None: the
    current one), the innermost first; empty: they are not known."""
    kernel_source: Callable[[int], Sequence[SourceFrame]] | None = None
    """Returns the same of an instruction of the kernel."""
    machine_code: Callable[[], GuestCode] | None = None
    """Returns the functions by which machine code reads the guest itself."""


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
