"""What all consumers share while probes fire: the guest, its CPU state, memory, threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emu.cpu_core import CpuCore
from emu.frame import Frame
from emu.guest.base import Guest, Lock
from emu.words import WORD_MASK
from trapline.framework.memory import Memory

if TYPE_CHECKING:
    from emu.native.guest import GuestCode

SIGN: Final = 0x8000_0000_0000_0000


def signed(value: int) -> int:
    """Return a 64-bit word as int64_t."""
    return value - (WORD_MASK + 1) if value & SIGN else value


@dataclass(frozen=True)
class Abilities:
    """What a guest may offer beyond `Guest`, as methods of these names.

    None: it cannot, and what needs it says so.

    A destructive action that the guest cannot do faults (illegal operation); chill() without a
    clock to move only counts.
    """

    thread_time: Callable[[], int] | None
    """Nanoseconds the current thread has been on a CPU: vtimestamp."""
    user_frame: Callable[[], Frame | None] | None
    """The registers with which the current thread left user mode: uregs[]."""
    parent: Callable[[int], int | None] | None
    """Parent of a process, None at the root: progenyof()."""
    interrupt_level: Callable[[], int] | None
    """Interrupts the current thread is serving: ipl."""
    open_file: Callable[[int], int] | None
    """Address of the current process's open file of a number, 0 if there is none: getf()."""
    lock: Callable[[int], Lock | None] | None
    """State of a lock, None for what is none; raises `BadAddressError`: mutex_owned() and its
    like."""
    signal: Callable[[int], None] | None
    """Send a signal to the current process: raise()."""
    stop: Callable[[], None] | None
    """Stop the current process: stop()."""
    panic: Callable[[str], None] | None
    """Bring the guest down: panic()."""
    breakpoint: Callable[[], None] | None
    """Enter the debugger: breakpoint()."""
    chill: Callable[[int], None] | None
    """Let nanoseconds go by: chill()."""

    machine_code: Callable[[], GuestCode] | None
    """What machine code can find out about the guest by itself."""

    @classmethod
    def of(cls, guest: Any) -> Abilities:
        """Look which of the methods a guest has."""
        return cls(**{name: getattr(guest, name, None) for name in cls.__annotations__})


@dataclass(slots=True)
class World:
    """See the module; one per `DTrace`."""

    guest: Guest
    core: CpuCore
    cpus: int
    memory: Memory
    abilities: Abilities
