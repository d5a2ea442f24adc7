"""System calls about who a process is, and what it may have.

Source: Linux kernel/sys.c, kernel/sched, kernel/cred.c.
"""

from __future__ import annotations

import struct

from emu.guest.linux.calls.table import (
    Address,
    Caller,
    Int,
    answer,
    call,
)
from emu.guest.linux.errno import (
    EACCES,
    EINVAL,
    EPERM,
    ESRCH,
    LinuxError,
)
from emu.guest.linux.process import Process

_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004


@call("getpid")
def getpid(c: Caller) -> int:
    """Return the process's number."""
    return c.process.pid


@call("gettid")
def gettid(c: Caller) -> int:
    """Return the thread's number."""
    return c.thread.tid


@call("getppid")
def getppid(c: Caller) -> int:
    """Return the parent's number."""
    parent = c.process.parent
    return parent.pid if parent is not None and parent.alive else 1


def _find(c: Caller, pid: int) -> Process:
    process = c.kernel.processes.get(pid) if pid else c.process
    if process is None:
        raise LinuxError(ESRCH)
    return process


@call("getpgid")
def getpgid(c: Caller, pid: Int) -> int:
    """Return a process group."""
    return _find(c, pid).group


@call("getpgrp")
def getpgrp(c: Caller) -> int:
    """Return the process group."""
    return c.process.group


@call("getsid")
def getsid(c: Caller, pid: Int) -> int:
    """Return a session."""
    return _find(c, pid).session


@call("setpgid")
def setpgid(c: Caller, pid: Int, group: Int) -> int:
    """Put a process into a group."""
    process = _find(c, pid)
    if process is not c.process and process.parent is not c.process:
        raise LinuxError(ESRCH)
    if process is not c.process and process.executed:
        raise LinuxError(EACCES)
    if group < 0:
        raise LinuxError(EINVAL)
    if process.session == process.pid:
        raise LinuxError(EPERM)
    process.group = group or process.pid
    return 0


@call("setsid")
def setsid(c: Caller) -> int:
    """Begin a session."""
    if c.process.group == c.process.pid:
        raise LinuxError(EPERM)
    c.process.session = c.process.group = c.process.pid
    return c.process.pid


@call("set_tid_address")
def set_tid_address(c: Caller, address: Address) -> int:
    """Say where the thread's number is to be cleared."""
    c.thread.clear_tid = address
    return c.thread.tid


@call("arch_prctl")
def arch_prctl(c: Caller, code: Int, address: Address) -> int:
    """Set the base of a segment."""
    registers = {_ARCH_SET_FS: "fs_base", _ARCH_SET_GS: "gs_base", _ARCH_GET_FS: "fs_base", _ARCH_GET_GS: "gs_base"}
    if code not in registers:
        raise LinuxError(EINVAL)
    engine = c.kernel.engine
    if code in {_ARCH_SET_FS, _ARCH_SET_GS}:
        engine.write_register(registers[code], address)
    else:
        c.write(address, struct.pack("<Q", engine.read_register(registers[code])))
    return 0


answer("ioprio_set", "ioprio_get", "personality", "membarrier")


@call("getcpu")
def getcpu(c: Caller, cpu: Address, node: Address) -> int:
    """Report which CPU this is; there is one node."""
    for address, number in ((cpu, c.thread.cpu), (node, 0)):
        if address:
            c.write(address, struct.pack("<I", number))
    return 0
