"""System calls about who a process is, what it may have, and processes as files.

Source: Linux kernel/sys.c, kernel/sched, kernel/cred.c, kernel/pid.c, kernel/signal.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.kernel.kill import check_signal, may_signal
from emu.guest.linux.calls.kernel.rlimit import process_of
from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import (
    EACCES,
    EBADF,
    EINVAL,
    ENODEV,
    ENOENT,
    EPERM,
    ESRCH,
    LinuxError,
)
from emu.guest.linux.fs.file_kinds import DirectoryOpen
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.open_file import O_EXCL, O_NONBLOCK, O_RDWR
from emu.guest.linux.fs.pidfs import ProcessDirectory, ProcessFile
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.personality import is_allowed
from emu.guest.linux.process.process import INIT, Process
from emu.isa.linux_signals import SignalInfo

_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004
# The end of the addresses that programs have.
_ARCH_TOP: Final = (1 << 47) - 4096
_ARCH_GET_CPUID, _ARCH_SET_CPUID = 0x1011, 0x1012
# The argument of personality that changes nothing.
_ASK: Final = 0xFFFF_FFFF
# PIDFD_THREAD: the file stands for one thread.
_THREAD: Final = O_EXCL
# The receivers of the signal: one thread, the process, or its group (PIDFD_SIGNAL_*).
_SIGNAL_THREAD, _SIGNAL_PROCESS, _SIGNAL_GROUP = 1, 2, 4


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
    """Set the address at which the thread's number is to be cleared."""
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


def process_file(c: Caller, fd: int) -> ProcessFile:
    """Return the process file of a descriptor.  Raises `LinuxError` EBADF."""
    file = c.file(fd)
    if not isinstance(file, ProcessFile):
        raise LinuxError(EBADF)
    return file


def _meant(c: Caller, fd: int) -> Process:
    """Return the process of a process file, or of an open directory of /proc.

    Raises `LinuxError` EBADF.
    """
    file = c.file(fd)
    if isinstance(file, DirectoryOpen) and isinstance(file.inode, ProcessDirectory):
        return file.inode.process
    return process_file(c, fd).process


def open_process(c: Caller, process: Process, flags: int) -> int:
    """Give the calling process a descriptor of a process."""
    return c.process.files.add(ProcessFile(Anonymous(), O_RDWR | flags & O_NONBLOCK, process), close_on_exec=True)


@call("pidfd_open")
def pidfd_open(c: Caller, pid: Int, flags: Unsigned) -> int:
    """Open a process."""
    if flags & ~(O_NONBLOCK | _THREAD) or pid <= 0:
        raise LinuxError(EINVAL)
    process = c.kernel.tasks.find(pid)
    if process is None:
        raise LinuxError(ENOENT if pid in c.kernel.threads else ESRCH)
    return open_process(c, process, flags)


@call("pidfd_send_signal")
def pidfd_send_signal(c: Caller, fd: Int, number: Int, info: Address, flags: Unsigned) -> int:
    """Send a signal to a process."""
    if flags not in {0, _SIGNAL_THREAD, _SIGNAL_PROCESS, _SIGNAL_GROUP}:
        raise LinuxError(EINVAL)
    process = _meant(c, fd)
    check_signal(number)
    if info and c.number(info, 4, signed=True) != number:
        raise LinuxError(EINVAL)
    if process.reaped:
        raise LinuxError(ESRCH)
    if not may_signal(c, process, number):
        raise LinuxError(EPERM)
    if number:
        user = c.process.credentials.user.real
        c.kernel.sending.send(process, SignalInfo(number, pid=c.process.pid, uid=user))
    return 0


@call("pidfd_getfd")
def pidfd_getfd(c: Caller, fd: Int, wanted: Int, flags: Unsigned) -> int:
    """Take a copy of another process's descriptor."""
    if flags:
        raise LinuxError(EINVAL)
    process = process_file(c, fd).process
    if not process.alive:
        raise LinuxError(ESRCH)
    own = c.process.credentials
    if not own.can(Capability.SYS_PTRACE) and own.user.real != process.credentials.user.real:
        raise LinuxError(EPERM)
    return c.process.files.add(process.files.get(wanted), close_on_exec=True)
