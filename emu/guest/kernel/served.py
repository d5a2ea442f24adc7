"""DTrace's access to the kernel guest, beyond the interface of every guest.

The guest is changed only by the kernel's own code (`KernelGuest.call`), between two of its blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from emu.elf.source.inlined import SourceFrame
from emu.guest.base import Abilities, Lock
from emu.guest.kernel.introspection import Introspection
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.view import KernelView

# The position in lo_flags of the class of a lock (FreeBSD sys/sys/lock.h).
_CLASS_SHIFT: Final = 24
_CLASS_MASK: Final = 0xF
# The bit of mtx_lock that says that a thread waits.
_CONTESTED: Final = 1
_SIGSTOP: Final = 17


class Served(KernelView):
    """The kernel guest's functions for D's less common built-ins and for the destructive actions."""

    call: Callable[..., int]
    soon: Callable[[Callable[[], object]], None]
    crash: Callable[..., KernelPanicError]
    user_source: Callable[[int, int | None], Sequence[SourceFrame]]

    @property
    def abilities(self) -> Abilities:
        """Return the abilities of this guest beyond the interface of every guest."""
        return Abilities(
            thread_time=self.thread_time,
            user_frame=self.user_frame,
            parent=self.parent,
            interrupt_level=self.interrupt_level,
            open_file=self.open_file,
            lock=self.lock,
            signal=self.signal,
            stop=self.stop,
            panic=self.panic,
            chill=self.chill,
            source=self.user_source,
            kernel_source=self.kernel_source,
            machine_code=self.machine_code,
        )

    # -- reading

    def thread_time(self) -> int:
        """Return the nanoseconds that the current thread has been on the CPU (vtimestamp)."""
        thread = self.introspection.thread_address()
        if not thread:
            return 0
        ran, since = (self.introspection.field64(thread, name) for name in ("TD_RUNTIME", "TD_SWITCHED_IN"))
        return ran + self.now() - since

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process, None if it has none (progenyof)."""
        return self.introspection.parent(pid)

    def interrupt_level(self) -> int:
        """Return the number of interrupts that the current thread is serving.

        FreeBSD has no interrupt levels (ipl).
        """
        return self.introspection.interrupts()

    def open_file(self, descriptor: int) -> int:
        """Return the address of an open file of the current process, 0 if there is none (getf)."""
        return self.introspection.open_file(descriptor)

    def lock(self, address: int) -> Lock | None:
        """Return the state of a mutex or shared/exclusive lock; None: it is neither.

        Raises `BadAddressError`.
        """
        read = _LOCK_CLASSES.get(self.introspection.lock_flags(address) >> _CLASS_SHIFT & _CLASS_MASK)
        return None if read is None else read(self.introspection, address)

    # -- actions

    def signal(self, number: int) -> None:
        """Send the current process a signal (raise)."""
        process = self.introspection.thread_field("TD_PROC")

        def send() -> None:
            self.call("kern_psignal", process, number)
            if not self.isa.is_kernel_address(self.engine.pc):
                self.engine.interrupt()  # signals are delivered on return to user mode

        self.soon(send)

    def stop(self) -> None:
        """Stop the current process, until it gets SIGCONT."""
        self.signal(_SIGSTOP)

    def panic(self, message: str) -> None:
        """Make the kernel panic with a message."""
        crash = self.crash(message)

        def fall() -> None:
            raise crash

        self.soon(fall)

    def chill(self, nanoseconds: int) -> None:
        """Let nanoseconds pass in which no code runs.

        The current run ends: its deadlines are counts of instructions, and are now earlier.
        """
        self.clock.skip_to(self.now() + nanoseconds)
        self.engine.stop()


def _mutex(kernel: Introspection, address: int, *, spins: bool) -> Lock:
    owner = kernel.field(address, "MTX_LOCK") & ~_CONTESTED
    return Lock(held=owner != 0, owner=owner, spins=spins)


def _shared_exclusive(kernel: Introspection, address: int) -> Lock:
    owner = kernel.field(address, "SX_OWNER")
    return Lock(held=owner != 0 or kernel.field32(address, "SX_SHARED") != 0, owner=owner, spins=False)


# Locks by their class, the index in FreeBSD's lock_classes[] (sys/kern/subr_lock.c): lc_owner() of each.
_LOCK_CLASSES: Final[Mapping[int, Callable[[Introspection, int], Lock]]] = {
    0: lambda kernel, address: _mutex(kernel, address, spins=True),
    1: lambda kernel, address: _mutex(kernel, address, spins=False),
    2: _shared_exclusive,
}
