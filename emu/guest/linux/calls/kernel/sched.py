"""System calls about how often and how long threads run: priorities, policies, CPUs.

Memory barriers are here as in Linux: the guest's CPUs take turns, so all threads see the same
memory, and only the registrations of a process are kept.

Source: Linux kernel/sched/syscalls.c, kernel/sched/membarrier.c, kernel/sys.c,
block/ioprio.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import E2BIG, EACCES, EBUSY, EINVAL, EOPNOTSUPP, EPERM, ESRCH, LinuxError
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import REAL_TIME, Policy, Scheduling, Thread
from emu.guest.linux.process.rlimit import NICE
from emu.guest.linux.sched.deadline import Budget, Reservation

_PRIO_PROCESS, _PRIO_PGRP, _PRIO_USER = range(3)
_MIN_NICE, _MAX_NICE = -20, 19
_LOWEST, _HIGHEST = 1, 99
_RTPRIO: Final = 14
# Added to a policy, and as a flag of struct sched_attr.
_RESET_ON_FORK: Final = 0x4000_0000
_ATTR_RESET_ON_FORK, _ATTR_KEEP_POLICY, _ATTR_KEEP_PARAMETERS = 1, 8, 0x10
# With SCHED_FLAG_RECLAIM and SCHED_FLAG_DL_OVERRUN, which change nothing here.
_ATTR_FLAGS: Final = 0x1F
# The least and the most use of the CPU: as in a kernel without CONFIG_UCLAMP_TASK.
_ATTR_CLAMPS: Final = frozenset({0x20, 0x40, 0x60})
# struct sched_attr: size, policy, flags, nice value, priority, three times of deadlines; the first version of it.
_ATTR: Final = struct.Struct("<IIQiIQQQ")
# The same with the least and the most use of the CPU, which is not limited here (SCHED_ATTR_SIZE_VER1).
_LONG_ATTR: Final = struct.Struct("<IIQiIQQQII")
# The first number that says whose threads are meant (IOPRIO_WHO_PROCESS); the order is that of setpriority.
_PROCESS: Final = 1
_NONE, _REAL_TIME, _BEST_EFFORT, _IDLE = range(4)
_SHIFT, _CLASSES, _LEVELS = 13, 7, 7
# The commands of membarrier.
_QUERY: Final = 0
_GLOBAL, _GLOBAL_EXPEDITED, _REGISTER_GLOBAL_EXPEDITED = 0x01, 0x02, 0x04
_PRIVATE_EXPEDITED, _REGISTER_PRIVATE_EXPEDITED = 0x08, 0x10
_SYNC_CORE, _REGISTER_SYNC_CORE, _GET_REGISTRATIONS = 0x20, 0x40, 0x200
# All of them; those for rseq are missing, as rseq is.
_ALL: Final = 0x27F
# Commands, and the registrations that they need.
_NEEDED: Final = {_PRIVATE_EXPEDITED: _REGISTER_PRIVATE_EXPEDITED, _SYNC_CORE: _REGISTER_SYNC_CORE}


def threads_of(c: Caller, which: int, who: int) -> list[Thread]:
    """Return the threads of a thread itself (0), a group (1), or a user (2); `who` 0: the caller's.

    Raises `LinuxError`: EINVAL, ESRCH.
    """
    threads = list(c.kernel.threads.values())
    if which == _PRIO_PROCESS:
        found = [_thread(c, who)]
    elif which == _PRIO_PGRP:
        found = [thread for thread in threads if thread.process.group == (who or c.process.group)]
    elif which == _PRIO_USER:
        user = who & 0xFFFF_FFFF or c.process.credentials.user.real
        found = [thread for thread in threads if thread.process.credentials.user.real == user]
    else:
        raise LinuxError(EINVAL)
    if not found:
        raise LinuxError(ESRCH)
    return found


def _thread(c: Caller, tid: int) -> Thread:
    """Return a thread, 0: the caller's.  Raises `LinuxError`: EINVAL, ESRCH."""
    thread = c.kernel.tasks.find_thread(tid) if tid else c.thread
    if thread is None:
        raise LinuxError(ESRCH)
    return thread


def _may_change(c: Caller, thread: Thread) -> bool:
    """Return whether a thread is the caller's to change."""
    mine, other = c.process.credentials, thread.process.credentials.user
    return mine.user.effective in {other.real, other.effective} or mine.can(Capability.SYS_NICE)


def _may_be_nice(c: Caller, thread: Thread, nice: int) -> bool:
    """Return whether the caller may give a thread a nice value (can_nice)."""
    allowed = 20 - nice <= thread.process.limits[NICE].soft or c.process.credentials.can(Capability.SYS_NICE)
    return nice >= thread.scheduling.nice or allowed


@call("getpriority")
def getpriority(c: Caller, which: Int, who: Int) -> int:
    """Report the highest priority of some threads, as 20 less their nice value."""
    return max(20 - thread.scheduling.nice for thread in threads_of(c, which, who))


@call("setpriority")
def setpriority(c: Caller, which: Int, who: Int, nice: Int) -> int:
    """Set the nice value of threads."""
    nice = min(max(nice, _MIN_NICE), _MAX_NICE)
    for thread in threads_of(c, which, who):
        if not _may_change(c, thread):
            raise LinuxError(EPERM)
        if not _may_be_nice(c, thread, nice):
            raise LinuxError(EACCES)
        thread.scheduling.nice = nice
    return 0


@call("nice")
def nice_(c: Caller, increment: Int) -> int:
    """Change the nice value."""
    nice = c.thread.scheduling.nice + min(max(increment, -40), 40)
    nice = min(max(nice, _MIN_NICE), _MAX_NICE)
    if not _may_be_nice(c, c.thread, nice):
        raise LinuxError(EPERM)
    c.thread.scheduling.nice = nice
    return 0


# -- policies


def _wanted(policy: int, priority: int) -> Scheduling:
    """Return what is asked for, but for deadlines.  Raises `LinuxError` EINVAL."""
    reset = bool(policy & _RESET_ON_FORK)
    policy &= ~_RESET_ON_FORK
    if policy not in set(Policy):
        raise LinuxError(EINVAL)
    known = Policy(policy)
    if not (_LOWEST <= priority <= _HIGHEST if known in REAL_TIME else priority == 0):
        raise LinuxError(EINVAL)
    return Scheduling(known, priority, reset_on_fork=reset)


def _change(c: Caller, thread: Thread, wanted: Scheduling) -> None:
    """Change how a thread is scheduled.  Raises `LinuxError` EPERM."""
    known, credentials = thread.scheduling, c.process.credentials
    if not credentials.can(Capability.SYS_NICE):
        if wanted.policy in REAL_TIME:
            limit = thread.process.limits[_RTPRIO].soft
            if (wanted.policy is not known.policy and not limit) or (
                wanted.priority > known.priority and wanted.priority > limit
            ):
                raise LinuxError(EPERM)
        elif not _may_be_nice(c, thread, wanted.nice):
            raise LinuxError(EPERM)
        if known.policy is Policy.IDLE is not wanted.policy and not _may_be_nice(c, thread, known.nice):
            raise LinuxError(EPERM)
        if not _may_change(c, thread) or (known.reset_on_fork and not wanted.reset_on_fork):
            raise LinuxError(EPERM)
        if wanted.policy is Policy.DEADLINE:
            raise LinuxError(EPERM)
    if thread.process.is_init:
        thread.scheduling = wanted
        return
    if wanted.reservation is not None:
        others = (one.scheduling.reservation for one in c.kernel.threads.values() if one is not thread)
        cpus = c.kernel.schedule.cpus
        if thread.affinity & cpus.mask != cpus.mask:
            raise LinuxError(EPERM)
        wanted.reservation.check((other for other in others if other is not None), len(cpus.all))
    before, thread.scheduling = thread.priority, wanted
    if wanted.reservation is not None or thread.budget is not None:
        made = Budget(wanted.reservation, c.now()) if wanted.reservation is not None else None
        c.kernel.schedule.reserve(thread, made)
    c.kernel.schedule.priority_changed(thread, before)


def _set(c: Caller, pid: int, policy: int | None, parameters: int) -> int:
    if pid < 0 or not parameters:
        raise LinuxError(EINVAL)
    priority = c.number(parameters, 4, signed=True)
    thread = _thread(c, pid)
    known = thread.scheduling
    if policy is None:
        policy = int(known.policy) | (_RESET_ON_FORK if known.reset_on_fork else 0)
    wanted = _wanted(policy, priority)
    if wanted.policy is Policy.DEADLINE:
        raise LinuxError(EINVAL)  # the structure has no times
    wanted.nice = known.nice
    _change(c, thread, wanted)
    return 0


@call("sched_setscheduler")
def sched_setscheduler(c: Caller, pid: Int, policy: Int, parameters: Address) -> int:
    """Set a thread's policy and priority."""
    if policy < 0:
        raise LinuxError(EINVAL)
    return _set(c, pid, policy, parameters)


@call("sched_setparam")
def sched_setparam(c: Caller, pid: Int, parameters: Address) -> int:
    """Set a thread's priority."""
    return _set(c, pid, None, parameters)


@call("sched_getscheduler")
def sched_getscheduler(c: Caller, pid: Int) -> int:
    """Report a thread's policy."""
    if pid < 0:
        raise LinuxError(EINVAL)
    known = _thread(c, pid).scheduling
    return int(known.policy) | (_RESET_ON_FORK if known.reset_on_fork else 0)


@call("sched_getparam")
def sched_getparam(c: Caller, pid: Int, parameters: Address) -> int:
    """Report a thread's priority."""
    if pid < 0 or not parameters:
        raise LinuxError(EINVAL)
    c.write(parameters, struct.pack("<i", _thread(c, pid).scheduling.priority))
    return 0


def _times(known: Scheduling) -> list[int]:
    """Return the times of a deadline's reservation; zeros: there is none."""
    asked = known.reservation
    return [asked.runtime, asked.deadline, asked.period] if asked is not None else [0, 0, 0]


@call("sched_setattr")
def sched_setattr(c: Caller, pid: Int, attributes: Address, flags: Unsigned) -> int:
    """Set how a thread is scheduled."""
    if pid < 0 or not attributes or flags:
        raise LinuxError(EINVAL)
    size = c.number(attributes, 4) or _ATTR.size
    if size < _ATTR.size or size > 4096:
        c.write(attributes, struct.pack("<I", _ATTR.size))
        raise LinuxError(E2BIG)
    if size > _LONG_ATTR.size and any(c.read(attributes + _LONG_ATTR.size, size - _LONG_ATTR.size)):
        c.write(attributes, struct.pack("<I", _LONG_ATTR.size))
        raise LinuxError(E2BIG)
    _size, policy, bits, nice, priority, *times = _ATTR.unpack(c.read(attributes, _ATTR.size))
    if bits & ~_ATTR_FLAGS:
        raise LinuxError(EOPNOTSUPP if bits & ~_ATTR_FLAGS in _ATTR_CLAMPS else EINVAL)
    thread = _thread(c, pid)
    known = thread.scheduling
    reset = bool(bits & _ATTR_RESET_ON_FORK)
    if bits & _ATTR_KEEP_POLICY:
        policy, reset = int(known.policy), known.reset_on_fork
    if bits & _ATTR_KEEP_PARAMETERS:  # then the policy stays too (kernel/sched/syscalls.c, __sched_setscheduler)
        policy, nice, priority, times = int(known.policy), known.nice, known.priority, _times(known)
    wanted = _wanted(policy | (_RESET_ON_FORK if reset else 0), priority)
    if wanted.policy is Policy.DEADLINE:
        runtime, deadline, period = times
        wanted.reservation = Reservation(runtime, deadline, period or deadline)
        wanted.reservation.check(())
    real_time = wanted.policy in {*REAL_TIME, Policy.DEADLINE}
    wanted.nice = thread.scheduling.nice if real_time else min(max(nice, _MIN_NICE), _MAX_NICE)
    _change(c, thread, wanted)
    return 0


@call("sched_getattr")
def sched_getattr(c: Caller, pid: Int, to: Address, size: Unsigned, flags: Unsigned) -> int:
    """Report how a thread is scheduled."""
    if flags or pid < 0 or not _ATTR.size <= size <= 4096:
        raise LinuxError(EINVAL)
    known = _thread(c, pid).scheduling
    nice = 0 if known.policy in {*REAL_TIME, Policy.DEADLINE} else known.nice
    times = _times(known)
    bits = _ATTR_RESET_ON_FORK if known.reset_on_fork else 0
    told = min(size, _LONG_ATTR.size)
    data = _LONG_ATTR.pack(told, known.policy, bits, nice, known.priority, *times, 0, 0)
    c.write(to, data[:told])
    return 0


@call("sched_get_priority_max")
def sched_get_priority_max(c: Caller, policy: Int) -> int:
    """Report the highest priority of a policy."""
    del c
    return _bound(policy, _HIGHEST)


@call("sched_get_priority_min")
def sched_get_priority_min(c: Caller, policy: Int) -> int:
    """Report the lowest priority of a policy."""
    del c
    return _bound(policy, _LOWEST)


def _bound(policy: int, of_real_time: int) -> int:
    if policy in REAL_TIME:
        return of_real_time
    if policy in set(Policy):
        return 0
    raise LinuxError(EINVAL)


@call("sched_rr_get_interval")
def sched_rr_get_interval(c: Caller, pid: Int, to: Address) -> int:
    """Report how long a turn is."""
    if pid < 0:
        raise LinuxError(EINVAL)
    time = c.kernel.schedule.turn_time(_thread(c, pid))
    c.write(to, struct.pack(f"<2{c.time_form}", *divmod(time, 1_000_000_000)))
    return 0


@call("sched_yield")
def sched_yield(c: Caller) -> int:
    """Give way."""
    c.kernel.schedule.yield_budget(c.thread)
    c.kernel.schedule.give_way()
    return 0


# -- CPUs


@call("sched_setaffinity")
def sched_setaffinity(c: Caller, pid: Int, size: Unsigned, mask: Address) -> int:
    """Set on which CPUs a thread runs: one that there is has to be among them."""
    cpus = c.kernel.schedule.cpus
    wanted = c.number(mask, min(size, 128)) & cpus.mask if size else 0
    thread = _thread(c, pid)
    if not _may_change(c, thread):
        raise LinuxError(EPERM)
    if not wanted:
        raise LinuxError(EINVAL)
    if thread.budget is not None and wanted != cpus.mask:
        raise LinuxError(EBUSY)
    cpus.restrict(thread, wanted)
    return 0


@call("sched_getaffinity")
def sched_getaffinity(c: Caller, pid: Int, size: Unsigned, mask: Address) -> int:
    """Report on which CPUs a thread may run."""
    if size < c.word or size % c.word:
        raise LinuxError(EINVAL)
    c.write_words(mask, _thread(c, pid).affinity & c.kernel.schedule.cpus.mask)
    return c.word


def _check_io_priority(c: Caller, priority: int) -> None:
    """Check an I/O priority (ioprio_check_cap).  Raises `LinuxError`: EINVAL, EPERM."""
    own, kind = c.process.credentials, priority >> _SHIFT & _CLASSES
    if kind == _REAL_TIME and not (own.can(Capability.SYS_ADMIN) or own.can(Capability.SYS_NICE)):
        raise LinuxError(EPERM)
    if kind > _IDLE or (kind == _NONE and priority & _LEVELS):
        raise LinuxError(EINVAL)


def _io_priority(thread: Thread) -> int:
    """Return a thread's I/O priority; without one of its own that of its scheduling."""
    if thread.io_priority >> _SHIFT != _NONE:
        return thread.io_priority
    policy = thread.scheduling.policy
    real_time = policy in {*REAL_TIME, Policy.DEADLINE}
    kind = _IDLE if policy is Policy.IDLE else _REAL_TIME if real_time else _BEST_EFFORT
    return kind << _SHIFT | (thread.scheduling.nice + 20) // 5


@call("ioprio_set")
def ioprio_set(c: Caller, which: Int, who: Int, priority: Int) -> int:
    """Set the I/O priority of threads."""
    _check_io_priority(c, priority)
    own = c.process.credentials
    for thread in threads_of(c, which - _PROCESS, who):
        other = thread.process.credentials.user.real
        if other not in {own.user.effective, own.user.real} and not own.can(Capability.SYS_NICE):
            raise LinuxError(EPERM)
        thread.io_priority = priority & 0xFFFF
    return 0


@call("ioprio_get")
def ioprio_get(c: Caller, which: Int, who: Int) -> int:
    """Report the I/O priority that a thread was given, or the best one of several threads."""
    threads = threads_of(c, which - _PROCESS, who)
    return threads[0].io_priority if which == _PROCESS else min(map(_io_priority, threads))


@call("membarrier")
def membarrier(c: Caller, command: Int, flags: Unsigned, _cpu: Int) -> int:
    """Execute a command: register for another one, or order memory between threads."""
    if flags:
        raise LinuxError(EINVAL)
    space = c.process.space
    if command == _QUERY:
        return _ALL
    if command == _GET_REGISTRATIONS:
        known = space.barriers
        return known | _REGISTER_PRIVATE_EXPEDITED if known & _REGISTER_SYNC_CORE else known
    if command in {_REGISTER_GLOBAL_EXPEDITED, _REGISTER_PRIVATE_EXPEDITED, _REGISTER_SYNC_CORE}:
        space.barriers |= command
    elif command in _NEEDED:
        if not space.barriers & _NEEDED[command]:
            raise LinuxError(EPERM)
    elif command not in {_GLOBAL, _GLOBAL_EXPEDITED}:
        raise LinuxError(EINVAL)
    return 0
