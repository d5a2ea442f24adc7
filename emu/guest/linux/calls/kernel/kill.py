"""System calls that send signals.

Source: Linux kernel/signal.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.kernel.rlimit import process_of
from emu.guest.linux.calls.table import Address, Caller, Int, call
from emu.guest.linux.errno import (
    EINTR,
    EINVAL,
    EPERM,
    ESRCH,
    LinuxError,
)
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Process
from emu.isa.linux_signals import SI_TKILL, SI_USER, Signal, SignalInfo

_LAST_SIGNAL: Final = 64


def check_signal(number: int) -> None:
    """Raise `LinuxError` EINVAL if a number is not a signal's, or 0, which sends nothing."""
    if not 0 <= number <= _LAST_SIGNAL:
        raise LinuxError(EINVAL)


def may_signal(c: Caller, process: Process, number: int) -> bool:
    """Return whether a process may send another a signal (kill_ok_by_cred)."""
    mine, other = c.process.credentials, process.credentials.user
    if number == Signal.SIGCONT and process.session == c.process.session:
        return True
    return (
        process is c.process
        or mine.can(Capability.KILL)
        or not {mine.user.effective, mine.user.real}.isdisjoint({other.real, other.saved})
    )


def _sent(c: Caller, number: int, code: int = SI_USER) -> SignalInfo:
    return SignalInfo(number, code, pid=c.process.pid, uid=c.process.credentials.user.real)


@call("kill")
def kill(c: Caller, pid: Int, number: Int) -> int:
    """Send a signal to a process, a group, or all."""
    if pid > 0:
        targets = [process_of(c, pid)]
    elif pid == -1:
        targets = [process for process in c.kernel.processes.values() if process is not c.process]
    else:
        group = -pid or c.process.group
        targets = [process for process in c.kernel.processes.values() if process.group == group]
    if not targets:
        raise LinuxError(ESRCH)
    check_signal(number)
    allowed = [process for process in targets if may_signal(c, process, number)]
    if not allowed:
        raise LinuxError(EPERM)
    if number:
        for process in allowed:
            c.kernel.sending.send(process, _sent(c, number))
    return 0


def _send_thread(c: Caller, pid: int | None, tid: int, number: int) -> int:
    """Send a signal to a thread; `pid` is its process, if that is to be checked."""
    thread = c.kernel.tasks.find_thread(tid)
    if thread is None or pid not in {None, thread.process.pid}:
        raise LinuxError(ESRCH)
    check_signal(number)
    if not may_signal(c, thread.process, number):
        raise LinuxError(EPERM)
    if number:
        c.kernel.sending.send_thread(thread, _sent(c, number, SI_TKILL))
    return 0


@call("tgkill")
def tgkill(c: Caller, pid: Int, tid: Int, number: Int) -> int:
    """Send a signal to a thread of a process."""
    if pid <= 0 or tid <= 0:
        raise LinuxError(EINVAL)
    return _send_thread(c, pid, tid, number)


@call("tkill")
def tkill(c: Caller, tid: Int, number: Int) -> int:
    """Send a signal to a thread."""
    if tid <= 0:
        raise LinuxError(EINVAL)
    return _send_thread(c, None, tid, number)


@call("rt_sigqueueinfo")
def rt_sigqueueinfo(c: Caller, pid: Int, number: Int, info: Address) -> int:
    """Send a signal with a value; only to itself may a process send what the kernel would."""
    code, sender, uid, value = struct.unpack(
        "<8xi4xiIQ" if c.word == 8 else "<8xiiII", c.read(info, 32)[: 16 + 2 * c.word]
    )
    if (code >= 0 or code == SI_TKILL) and pid != c.process.pid:
        raise LinuxError(EPERM)
    if pid <= 0:
        raise LinuxError(ESRCH)
    process = process_of(c, pid)
    check_signal(number)
    if not may_signal(c, process, number):
        raise LinuxError(EPERM)
    if number:
        c.kernel.sending.send(process, SignalInfo(number, code, pid=sender, uid=uid, value=value))
    return 0


@call("restart_syscall")
def restart_syscall(_c: Caller) -> int:
    """Fail with EINTR: calls are made again, so there is nothing to restart."""
    raise LinuxError(EINTR)
