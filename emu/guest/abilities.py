"""Optional abilities of a guest, beyond the interface of every guest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emu.displaced.frame import NamedRegisters
from emu.elf.source.inlined import SourceFrame
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
