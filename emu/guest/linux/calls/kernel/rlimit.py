"""System calls about limits and what was used.  Source: Linux kernel/sys.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EINVAL, EPERM, ESRCH, LinuxError
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Process
from emu.guest.linux.process.rlimit import CPU, INFINITE, NAMES, NOFILE, Limit
from emu.guest.linux.time.alarms import Countdown
from emu.isa.linux_signals import SI_KERNEL, Signal, SignalInfo

_MOST_FILES: Final = 1 << 20
_SECOND: Final = 1_000_000_000
_SELF, _CHILDREN, _THREAD = 0, -1, 1


def process_of(c: Caller, pid: int) -> Process:
    """Return the process of a pid or tid, 0: the caller's.  Raises `LinuxError` ESRCH."""
    process = c.kernel.tasks.find(pid) if pid else c.process
    if process is None and pid in c.kernel.threads:
        process = c.kernel.threads[pid].process
    if process is None:
        raise LinuxError(ESRCH)
    return process


def _set(c: Caller, process: Process, resource: int, limit: Limit) -> None:
    """Set a limit.  Raises `LinuxError`: EINVAL, EPERM."""
    known = process.limits[resource]
    if limit.soft > limit.hard:
        raise LinuxError(EINVAL)
    may_raise = c.process.credentials.can(Capability.SYS_RESOURCE)
    if (limit.hard > known.hard and not may_raise) or (resource == NOFILE and limit.hard > _MOST_FILES):
        raise LinuxError(EPERM)
    process.limits[resource] = limit
    if resource == NOFILE:
        for table in process.tables:
            table.limit = limit.soft
    elif resource == CPU:
        limit_cpu(c, process)


def limit_cpu(c: Caller, process: Process) -> None:
    """Enforce the limit of CPU time.

    SIGXCPU comes each second from the soft limit on, and SIGKILL at the hard limit.
    """
    limits, kernel = process.limits, c.kernel
    if limits.cpu is not None:
        limits.cpu.set(None)
    limit = limits[CPU]
    if limit.soft == INFINITE:
        return

    def expired() -> None:
        assert limits.cpu is not None
        limits.cpu.go_on()
        over = limits.cpu.now() >= limit.hard * _SECOND
        kernel.sending.send(process, SignalInfo(Signal.SIGKILL if over else Signal.SIGXCPU, SI_KERNEL))

    limits.cpu = Countdown(kernel.alarms, process, expired)
    limits.cpu.set(max(limit.soft, 1) * _SECOND, _SECOND)


def _check(resource: int) -> None:
    if resource >= len(NAMES):
        raise LinuxError(EINVAL)


@call("prlimit64")
def prlimit64(c: Caller, pid: Int, resource: Unsigned, new: Address, old: Address) -> int:
    """Report a limit, or set it."""
    _check(resource)
    process = process_of(c, pid)
    if process is not c.process and not c.process.credentials.can(Capability.SYS_RESOURCE):
        mine, other = c.process.credentials.user.real, process.credentials.user
        if {mine} != {other.real, other.effective, other.saved}:
            raise LinuxError(EPERM)
    known = process.limits[resource]
    if new:
        _set(c, process, resource, Limit(*struct.unpack("<QQ", c.read(new, 16))))
    if old:
        c.write(old, struct.pack("<QQ", *known))
    return 0


@call("getrlimit", "ugetrlimit")
def getrlimit(c: Caller, resource: Unsigned, old: Address) -> int:
    """Report a limit."""
    _check(resource)
    c.write_words(old, *(min(value, (1 << 8 * c.word) - 1) for value in c.process.limits[resource]))
    return 0


@call("setrlimit")
def setrlimit(c: Caller, resource: Unsigned, new: Address) -> int:
    """Set a limit."""
    _check(resource)
    most = (1 << 8 * c.word) - 1
    _set(c, c.process, resource, Limit(*(INFINITE if value == most else value for value in c.words(new, 2))))
    return 0


# -- what was used


def usage(c: Caller, ran: int, most_pages: int, faults: int) -> bytes:
    """Return struct rusage: time by the instruction, the most pages at one time, page faults."""
    seconds, nanoseconds = divmod(ran * _SECOND // c.kernel.clock.rate, _SECOND)
    fields = (seconds, nanoseconds // 1000, 0, 0, most_pages * 4, 0, 0, 0, faults)
    return struct.pack("<9q" if c.word == 8 else "<9i", *fields) + bytes(9 * c.word)


def usage_of(c: Caller, process: Process) -> bytes:
    """Return struct rusage of a process and the children it has waited for, as wait4 tells it."""
    ran = process.ran + process.children_ran
    return usage(c, ran, max(process.most_pages, process.children_pages), process.faults)


@call("getrusage")
def getrusage(c: Caller, who: Int, to: Address) -> int:
    """Report what was used."""
    process = c.process
    process.count_pages()
    if who == _CHILDREN:
        told = usage(c, process.children_ran, process.children_pages, 0)
    elif who in {_SELF, _THREAD}:
        ran = c.thread.ran if who == _THREAD else process.ran
        told = usage(c, ran, process.most_pages, process.faults)
    else:
        raise LinuxError(EINVAL)
    c.write(to, told)
    return 0
