"""System calls about processes by file.  Source: Linux kernel/pid.c, kernel/signal.c."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.kernel.kill import check_signal, may_signal
from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EBADF, EINVAL, ENOENT, EPERM, ESRCH, LinuxError
from emu.guest.linux.fs.file_kinds import DirectoryOpen
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.open_file import O_EXCL, O_NONBLOCK, O_RDWR
from emu.guest.linux.fs.pidfs import ProcessDirectory, ProcessFile
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Process
from emu.isa.linux_signals import SignalInfo

# PIDFD_THREAD: the file stands for one thread.
_THREAD: Final = O_EXCL
# The receivers of the signal: one thread, the process, or its group (PIDFD_SIGNAL_*).
_SIGNAL_THREAD, _SIGNAL_PROCESS, _SIGNAL_GROUP = 1, 2, 4


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
