"""Futexes that are locks with an owner (PI), and the lists of locks that threads leave behind.

The word of a lock is the number of the thread that has it, with a bit if others wait and one if an
owner has ended without giving it back.  Who waits lends the owner its priority.

Source: Linux kernel/futex/pi.c, requeue.c, core.c (exit_robust_list).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from emu.guest.linux.errno import EDEADLK, EPERM, ESRCH, LinuxError
from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.process.futex import Futexes
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Thread
from emu.guest.linux.sched.core import Schedule
from emu.isa.base import Isa
from emu.support.words import BadAddressError

WAITERS: Final = 1 << 31
OWNER_DIED: Final = 1 << 30
TID_MASK: Final = OWNER_DIED - 1
# A list of locks is followed this far (ROBUST_LIST_LIMIT).
_LIST_MAX: Final = 2048


@dataclass(slots=True, eq=False)
class PiWaiter:
    """A thread that waits for a lock."""

    thread: Thread
    granted: bool = False


@dataclass(slots=True, eq=False)
class PiLock:
    """A lock that threads wait for."""

    space: Space
    address: int
    owner: Thread
    waiters: list[PiWaiter] = field(default_factory=list)

    def first(self) -> PiWaiter:
        """Return who gets it next: of the highest priority the one who waits longest."""
        return max(self.waiters, key=lambda waiter: waiter.thread.priority)


class PiLocks:
    """The locks of one kernel that threads wait for."""

    def __init__(self, isa: Isa, futexes: Futexes, schedule: Schedule, tasks: Tasks) -> None:
        self._isa = isa
        self._futexes = futexes
        self._schedule = schedule
        self._tasks = tasks
        self._locks: dict[tuple[object, int], PiLock] = {}

    @staticmethod
    def _read(space: Space, address: int) -> int:
        return int.from_bytes(space.peek(address, 4), "little")

    @staticmethod
    def _write(space: Space, address: int, value: int) -> None:
        space.poke(address, value.to_bytes(4, "little"), forget=False)

    def take(self, thread: Thread, space: Space, address: int) -> bool:
        """Give a lock to a thread if no one has it; False: another thread has it.

        Raises `LinuxError`: EDEADLK, ESRCH; `BadAddressError`.
        """
        value = self._read(space, address)
        owner = value & TID_MASK
        if owner == thread.tid:
            raise LinuxError(EDEADLK)
        lock = self._locks.get(self._futexes.key(space, address))
        if lock is not None and lock.waiters:
            return False
        if not owner:
            self._write(space, address, value & OWNER_DIED | thread.tid)
            return True
        if owner not in self._tasks.threads:
            raise LinuxError(ESRCH)
        return False

    def wait(self, thread: Thread, space: Space, address: int) -> tuple[PiLock, PiWaiter]:
        """Queue a thread for a lock that `take` has refused.  Raises `LinuxError` EDEADLK."""
        key = self._futexes.key(space, address)
        lock = self._locks.get(key)
        value = self._read(space, address)
        if lock is None:
            lock = PiLock(space, address, self._tasks.threads[value & TID_MASK])
        if self._would_wait_for_itself(thread, lock):
            raise LinuxError(EDEADLK)
        self._locks[key] = lock
        self._write(space, address, value | WAITERS)
        waiter = PiWaiter(thread)
        lock.waiters.append(waiter)
        self._lend(lock.owner)
        return lock, waiter

    def _would_wait_for_itself(self, thread: Thread, lock: PiLock) -> bool:
        seen: set[int] = set()
        while lock.owner is not thread:
            waits = (other for other in self._locks.values() for one in other.waiters if one.thread is lock.owner)
            following = next(waits, None)
            if following is None or id(following) in seen:
                return False
            seen.add(id(following))
            lock = following
        return True

    def leave(self, lock: PiLock, waiter: PiWaiter) -> None:
        """Remove a thread from the queue, if it was not given the lock."""
        if waiter in lock.waiters:
            lock.waiters.remove(waiter)
            self._lend(lock.owner)
            self._forget(lock)

    def give_back(self, thread: Thread, space: Space, address: int) -> None:
        """Give a lock to the next thread.  Raises `LinuxError` EPERM: another thread has it."""
        value = self._read(space, address)
        if value & TID_MASK != thread.tid:
            raise LinuxError(EPERM)
        lock = self._locks.get(self._futexes.key(space, address))
        if lock is None or not lock.waiters:
            self._write(space, address, 0)
            return
        self._hand_over(lock, 0)

    def _hand_over(self, lock: PiLock, bits: int) -> None:
        waiter = lock.first()
        lock.waiters.remove(waiter)
        waiter.granted = True
        before, lock.owner = lock.owner, waiter.thread
        with suppress(BadAddressError):  # the memory is gone: there is nothing to tell
            self._write(lock.space, lock.address, waiter.thread.tid | WAITERS | bits)
        self._lend(before)
        self._lend(lock.owner)
        self._forget(lock)

    def _forget(self, lock: PiLock) -> None:
        if not lock.waiters:
            self._locks = {key: one for key, one in self._locks.items() if one is not lock}

    def _lend(self, owner: Thread) -> None:
        """Lend the owner of locks the highest priority of their waiting threads, and so on."""
        seen: set[Thread] = set()
        following: Thread | None = owner
        while following is not None and following not in seen:
            seen.add(following)
            held = [one for one in self._locks.values() if one.owner is following]
            lent = [waiter.thread.priority for lock in held for waiter in lock.waiters]
            before, following.lent_priority = following.priority, max(lent, default=0)
            self._schedule.priority_changed(following, before)
            waits = (one for one in self._locks.values() if any(w.thread is following for w in one.waiters))
            following = next((one.owner for one in waits), None)

    # -- what a thread leaves behind

    def ended(self, thread: Thread) -> None:
        """Give on the locks of a thread that ends, and mark them: its own list, and PI locks."""
        space = thread.process.space
        if thread.robust_list:
            for address, is_pi, is_pending in self._left(thread):
                if not self._mark(thread, space, address, is_pi=is_pi, is_pending=is_pending):
                    break
            thread.robust_list = 0
        for lock in [lock for lock in self._locks.values() if lock.owner is thread]:
            self._hand_over(lock, OWNER_DIED)

    def _left(self, thread: Thread) -> Iterator[tuple[int, bool, bool]]:
        """Yield the locks on a thread's list: address, whether PI, whether it was being changed."""
        space, word, head = thread.process.space, self._isa.linux.word, thread.robust_list

        def pointer(address: int) -> int:
            return int.from_bytes(space.peek(address, word), "little")

        mask = self._isa.address_mask
        try:
            entry, offset, pending = (pointer(head + word * index) for index in range(3))
            for _ in range(_LIST_MAX):
                if entry & ~1 == head:
                    break
                following = pointer(entry & ~1)
                if entry & ~1 != pending & ~1:
                    yield (entry & ~1) + offset & mask, bool(entry & 1), False
                entry = following
        except BadAddressError:
            return
        if pending & ~1:
            yield (pending & ~1) + offset & mask, bool(pending & 1), True

    def _mark(self, thread: Thread, space: Space, address: int, *, is_pi: bool, is_pending: bool) -> bool:
        """Mark a lock whose owner has ended, and wake one who waits; False: it cannot be read."""
        if address % 4:
            return False
        try:
            value = self._read(space, address)
            if is_pending and not is_pi and not value:
                self._futexes.wake(space, address, 1)
                return True
            if value & TID_MASK != thread.tid:
                return True
            self._write(space, address, value & WAITERS | OWNER_DIED)
        except BadAddressError:
            return False
        if not is_pi and value & WAITERS:
            self._futexes.wake(space, address, 1)
        return True
