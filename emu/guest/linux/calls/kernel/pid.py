"""System calls about who a process is, and what it may have.

Source: Linux kernel/sys.c, kernel/sched, kernel/cred.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.kernel.rlimit import process_of
from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import (
    EACCES,
    EINVAL,
    ENODEV,
    EPERM,
    ESRCH,
    LinuxError,
)
from emu.guest.linux.process.personality import is_allowed
from emu.guest.linux.process.process import INIT

_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004
# The end of the addresses that programs have.
_ARCH_TOP: Final = (1 << 47) - 4096
_ARCH_GET_CPUID, _ARCH_SET_CPUID = 0x1011, 0x1012
# The argument of personality that changes nothing.
_ASK: Final = 0xFFFF_FFFF


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
    return parent.pid if parent is not None and parent.alive else INIT


@call("getpgid")
def getpgid(c: Caller, pid: Int) -> int:
    """Return a process group."""
    return process_of(c, pid).group


@call("getpgrp")
def getpgrp(c: Caller) -> int:
    """Return the process group."""
    return c.process.group


@call("getsid")
def getsid(c: Caller, pid: Int) -> int:
    """Return a session."""
    return process_of(c, pid).session


@call("setpgid")
def setpgid(c: Caller, pid: Int, group: Int) -> int:
    """Put a process into a group."""
    group = group or pid
    if group < 0:
        raise LinuxError(EINVAL)
    process = process_of(c, pid)
    if pid not in {0, process.pid}:
        raise LinuxError(EINVAL)  # it is a thread
    if process.parent is c.process:
        if process.session != c.process.session:
            raise LinuxError(EPERM)
        if process.executed:
            raise LinuxError(EACCES)
    elif process is not c.process:
        raise LinuxError(ESRCH)
    if process.session == process.pid:
        raise LinuxError(EPERM)
    members = c.kernel.tasks.group(group) if group not in {0, process.pid} else []
    if group not in {0, process.pid} and (not members or members[0].session != c.process.session):
        raise LinuxError(EPERM)
    process.group = group or process.pid
    return 0


@call("setsid")
def setsid(c: Caller) -> int:
    """Begin a session."""
    if c.process.session == c.process.pid or c.kernel.tasks.group(c.process.pid):
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
    """Set or tell the base of a segment; cpuid always works."""
    if code == _ARCH_GET_CPUID:
        return 1
    if code == _ARCH_SET_CPUID:
        raise LinuxError(ENODEV)
    registers = {_ARCH_SET_FS: "fs_base", _ARCH_SET_GS: "gs_base", _ARCH_GET_FS: "fs_base", _ARCH_GET_GS: "gs_base"}
    if code not in registers or c.word != 8:
        raise LinuxError(EINVAL)
    engine = c.kernel.engine
    if code in {_ARCH_SET_FS, _ARCH_SET_GS}:
        if address >= _ARCH_TOP:
            raise LinuxError(EPERM)
        engine.write_register(registers[code], address)
    else:
        c.write(address, struct.pack("<Q", engine.read_register(registers[code])))
    return 0


@call("personality")
def personality(c: Caller, wanted: Unsigned) -> int:
    """Ask for the behaviour of another system, and report the old one."""
    old = c.thread.personality
    if not is_allowed(wanted, c.kernel.abi) and wanted != _ASK:
        raise LinuxError(EINVAL)
    if wanted != _ASK:
        c.thread.personality = wanted
    return old


@call("getcpu")
def getcpu(c: Caller, cpu: Address, node: Address) -> int:
    """Report which CPU this is; there is one node."""
    for address, number in ((cpu, c.thread.cpu), (node, 0)):
        if address:
            c.write(address, struct.pack("<I", number))
    return 0
