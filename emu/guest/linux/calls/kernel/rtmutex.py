"""The operations of futex on locks with an owner.

Source: Linux kernel/futex/pi.c, requeue.c, syscalls.c.
"""

from __future__ import annotations

from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, call
from emu.guest.linux.errno import EAGAIN, EINVAL, EPERM, ESRCH, ETIMEDOUT, LinuxError
from emu.guest.linux.process.process import Thread, Wait, Waiter
from emu.guest.linux.process.rtmutex import PiLock, PiWaiter


class RequeuedWaiter(Waiter):
    """A thread that waits for a futex, to be given a lock when it is woken."""

    __slots__ = ("lock", "target", "thread", "waits")

    def __init__(self, thread: Thread, target: int, queue: list[Waiter]) -> None:
        super().__init__(0xFFFF_FFFF, queue)
        self.thread = thread
        self.target = target
        """Address of the lock."""
        self.waits: tuple[PiLock, PiWaiter] | None = None
        """The lock to which it was moved, while it waits for that; None: it does not."""

    @property
    def done(self) -> bool:
        """Whether it has the lock, or was woken without."""
        return self.woken and (self.waits is None or self.waits[1].granted)


def lock(c: Caller, address: int, deadline: int | None, *, wait: bool = True) -> Blocking:
    """Take a lock.  Raises `LinuxError`: EDEADLK, EAGAIN, ESRCH, ETIMEDOUT, EINVAL."""
    if address % 4:
        raise LinuxError(EINVAL)
    locks, space = c.kernel.pi_locks, c.process.space
    if locks.take(c.thread, space, address):
        return 0
    if not wait:
        raise LinuxError(EAGAIN)
    found, waiter = locks.wait(c.thread, space, address)
    try:
        if not (yield Wait(lambda: waiter.granted, deadline, restarted=True)):
            raise LinuxError(ETIMEDOUT)
    finally:
        locks.leave(found, waiter)
    return 0


def unlock(c: Caller, address: int) -> int:
    """Give a lock back.  Raises `LinuxError`: EPERM, EINVAL."""
    if address % 4:
        raise LinuxError(EINVAL)
    c.kernel.pi_locks.give_back(c.thread, c.process.space, address)
    return 0


def wait_for_lock(c: Caller, address: int, value: int, deadline: int | None, target: int) -> Blocking:
    """Wait for a word, and have the lock at `target` when it is over."""
    if address == target or address % 4 or target % 4:
        raise LinuxError(EINVAL)
    if c.number(address, 4) != value:
        raise LinuxError(EAGAIN)
    waiter = RequeuedWaiter(c.thread, target, c.kernel.futexes.queue(c.process.space, address))
    try:
        if not (yield Wait(lambda: waiter.done, deadline)):
            raise LinuxError(ETIMEDOUT)
    finally:
        if not waiter.woken:
            waiter.queue.remove(waiter)
        elif waiter.waits is not None:
            c.kernel.pi_locks.leave(*waiter.waits)
    return 0


def requeue(c: Caller, address: int, wake: int, move: int, target: int, value: int) -> int:
    """Give a lock to the first who waits for a word, and let the others wait for the lock.

    Raises `LinuxError`: EINVAL, EAGAIN.
    """
    if wake != 1 or address == target or move < 0:
        raise LinuxError(EINVAL)
    if c.number(address, 4) != value:
        raise LinuxError(EAGAIN)
    futexes, locks, space = c.kernel.futexes, c.kernel.pi_locks, c.process.space
    done = 0
    for waiter in futexes.waiters(space, address)[: move + wake]:
        if not isinstance(waiter, RequeuedWaiter) or waiter.target != target:
            raise LinuxError(EINVAL)
        if not locks.take(waiter.thread, space, target):
            waiter.waits = locks.wait(waiter.thread, space, target)
        futexes.move(space, address, waiter)
        done += 1
    return done


# -- lists of locks


@call("set_robust_list")
def set_robust_list(c: Caller, head: Address, size: Size) -> int:
    """Note where the thread keeps its locks."""
    if size != 3 * c.word:
        raise LinuxError(EINVAL)
    c.thread.robust_list = head
    return 0


@call("get_robust_list")
def get_robust_list(c: Caller, pid: Int, head: Address, size: Address) -> int:
    """Report where a thread keeps its locks."""
    thread = c.kernel.threads.get(pid) if pid else c.thread
    if thread is None:
        raise LinuxError(ESRCH)
    mine, other = c.process.credentials, thread.process.credentials
    if thread.process is not c.process and mine.user.effective not in {0, other.user.real}:
        raise LinuxError(EPERM)
    c.write_words(size, 3 * c.word)
    c.write_words(head, thread.robust_list)
    return 0
