"""System calls about the priority of input and output.  Source: Linux block/ioprio.c."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.kernel.sched import threads_of
from emu.guest.linux.calls.table import Caller, Int, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import REAL_TIME, Policy, Thread

# The first number that says whose threads are meant (IOPRIO_WHO_PROCESS); the order is that of setpriority.
_PROCESS: Final = 1
_NONE, _REAL_TIME, _BEST_EFFORT, _IDLE = range(4)
_SHIFT, _CLASSES, _LEVELS = 13, 7, 7


def _check(c: Caller, priority: int) -> None:
    """Check a priority (ioprio_check_cap).  Raises `LinuxError`: EINVAL, EPERM."""
    own, kind = c.process.credentials, priority >> _SHIFT & _CLASSES
    if kind == _REAL_TIME and not (own.can(Capability.SYS_ADMIN) or own.can(Capability.SYS_NICE)):
        raise LinuxError(EPERM)
    if kind > _IDLE or (kind == _NONE and priority & _LEVELS):
        raise LinuxError(EINVAL)


def _effective(thread: Thread) -> int:
    """Return a thread's priority; without one of its own that of its scheduling."""
    if thread.io_priority >> _SHIFT != _NONE:
        return thread.io_priority
    policy = thread.scheduling.policy
    real_time = policy in {*REAL_TIME, Policy.DEADLINE}
    kind = _IDLE if policy is Policy.IDLE else _REAL_TIME if real_time else _BEST_EFFORT
    return kind << _SHIFT | (thread.scheduling.nice + 20) // 5


@call("ioprio_set")
def ioprio_set(c: Caller, which: Int, who: Int, priority: Int) -> int:
    """Set the priority of threads."""
    _check(c, priority)
    own = c.process.credentials
    for thread in threads_of(c, which - _PROCESS, who):
        other = thread.process.credentials.user.real
        if other not in {own.user.effective, own.user.real} and not own.can(Capability.SYS_NICE):
            raise LinuxError(EPERM)
        thread.io_priority = priority & 0xFFFF
    return 0


@call("ioprio_get")
def ioprio_get(c: Caller, which: Int, who: Int) -> int:
    """Report the priority that a thread was given, or the best one of several threads."""
    threads = threads_of(c, which - _PROCESS, who)
    return threads[0].io_priority if which == _PROCESS else min(map(_effective, threads))
