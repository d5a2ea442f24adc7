"""fcntl: flags of descriptors and files, the owner of a file's events (O_ASYNC), seals.

Source: Linux fs/fcntl.c, fs/ioctl.c, mm/memfd.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.locks import is_record_command, record
from emu.guest.linux.calls.table import Blocking, Caller, Int, Long, Unsigned, call
from emu.guest.linux.errno import EBADF, EBUSY, EINVAL, ENOTTY, EPERM, ESRCH, LinuxError
from emu.guest.linux.fs.fasync import OF_GROUP, OF_PROCESS, OF_THREAD, current_owner
from emu.guest.linux.fs.file_kinds import PathOnly, RegularOpen
from emu.guest.linux.fs.open_file import O_ASYNC, O_CLOEXEC, O_CREAT, O_EXCL, O_TRUNC, SETTABLE, OpenFile
from emu.guest.linux.fs.pipe import PipeEnd
from emu.guest.linux.fs.regular import OF_PROGRAMS, Seal, need_unsealed
from emu.guest.linux.process.exec import is_mapped_for_writing
from emu.isa.linux_signals import LAST

# F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX.
_OWNER_COMMANDS: Final = frozenset({8, 9, 10, 11, 15, 16})
_OWNER: Final = struct.Struct("<ii")
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL = range(5)
_F_DUPFD_CLOEXEC, _F_SETPIPE_SZ, _F_GETPIPE_SZ = 1030, 1031, 1032
# The operations on a descriptor that only represents a path.
_OF_PATHS: Final = frozenset({_F_DUPFD, _F_DUPFD_CLOEXEC, _F_GETFD, _F_SETFD, _F_GETFL})
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEAL_COMMANDS: Final = frozenset({_F_ADD_SEALS, _F_GET_SEALS})
_ALL: Final = 0x3F
_EXECUTABLE: Final = 0o111


def _own(c: Caller, file: OpenFile, command: int, argument: int) -> int:
    """Execute a command about the owner of a file's events.  Raises `LinuxError`: EINVAL, ESRCH."""
    number = (argument & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)
    kind, owner = file.owner
    match command:
        case 8:  # F_SETOWN
            _set(c, file, OF_GROUP if number < 0 else OF_PROCESS, abs(number))
        case 9:  # F_GETOWN
            return -owner if kind == OF_GROUP else owner
        case 10:  # F_SETSIG
            if not 0 <= number <= LAST:
                raise LinuxError(EINVAL)
            file.signal = number
        case 11:  # F_GETSIG
            return file.signal
        case 15:  # F_SETOWN_EX
            _set(c, file, *_OWNER.unpack(c.read(argument & c.kernel.isa.address_mask, _OWNER.size)))
        case _:
            c.write(argument & c.kernel.isa.address_mask, _OWNER.pack(kind, owner))
    return 0


def _set(c: Caller, file: OpenFile, kind: int, number: int) -> None:
    kernel = c.kernel
    if kind not in {OF_THREAD, OF_PROCESS, OF_GROUP}:
        raise LinuxError(EINVAL)
    there = {
        OF_THREAD: kernel.tasks.find_thread(number) is not None,
        OF_PROCESS: kernel.tasks.find(number) is not None,
        OF_GROUP: any(process.group == number for process in kernel.processes.values()),
    }
    if number and not there[kind]:
        raise LinuxError(ESRCH)
    file.owner = (kind, number)
    file.owner_set_by = current_owner(c.thread)


def set_async(c: Caller, fd: int, *, on: bool, told: bool = True) -> int:
    """Report the owner of a file of its events from now on, or no longer (O_ASYNC).

    Raises `LinuxError` ENOTTY where the file has no owner to tell, if that is `told`.
    """
    file = c.file(fd)
    if on == bool(file.flags & O_ASYNC):
        return 0
    if file.notices() is None:
        if told:
            raise LinuxError(ENOTTY)
        return 0
    file.flags ^= O_ASYNC
    c.kernel.async_files.set(file, fd, on=on)
    return 0


def _seal(c: Caller, file: OpenFile, command: int, argument: int) -> int:
    """Return the seals of a file, or add some.  Raises `LinuxError`: EINVAL, EPERM, EBUSY."""
    if not isinstance(file, RegularOpen):
        raise LinuxError(EINVAL)
    inode = file.inode
    if command == _F_GET_SEALS:
        return inode.seals
    if not file.can_write:
        raise LinuxError(EPERM)
    if argument & ~_ALL:
        raise LinuxError(EINVAL)
    need_unsealed(inode.seals, Seal.SEAL)
    wanted = Seal(argument)
    if Seal.EXEC in wanted and inode.permissions & _EXECUTABLE:
        wanted |= OF_PROGRAMS
    if Seal.WRITE in wanted and Seal.WRITE not in inode.seals and is_mapped_for_writing(c.kernel, inode):
        raise LinuxError(EBUSY)
    inode.seals |= wanted
    return 0


@call("fcntl")
def fcntl(c: Caller, fd: Int, command: Unsigned, argument: Long) -> Blocking:
    """Report about a descriptor, or change it."""
    file, files = c.file(fd), c.process.files
    if isinstance(file, PathOnly) and command not in _OF_PATHS:
        raise LinuxError(EBADF)
    if command in {_F_DUPFD, _F_DUPFD_CLOEXEC}:
        if not 0 <= argument < files.limit:
            raise LinuxError(EINVAL)
        return files.add(file, lowest=argument, close_on_exec=command == _F_DUPFD_CLOEXEC)
    if command == _F_GETFD:
        return int(files.closes_on_exec(fd))
    if command == _F_SETFD:
        files.set_close_on_exec(fd, close=bool(argument & 1))
        return 0
    if command == _F_GETFL:
        return file.flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC) | c.kernel.abi.open_flags.large_file
    if command == _F_SETFL:
        file.flags = file.flags & ~SETTABLE | argument & SETTABLE
        return set_async(c, fd, on=bool(argument & O_ASYNC), told=False)
    if is_record_command(command, c.word):
        return (yield from record(c, fd, command, argument & c.kernel.isa.address_mask))
    if command in _OWNER_COMMANDS:
        return _own(c, file, command, argument)
    if command in {_F_GETPIPE_SZ, _F_SETPIPE_SZ}:
        if not isinstance(file, PipeEnd):
            raise LinuxError(EBADF)
        return file.pipe.capacity if command == _F_GETPIPE_SZ else file.pipe.resize(argument)
    if command in _SEAL_COMMANDS:
        return _seal(c, file, command, argument & 0xFFFF_FFFF)
    raise LinuxError(EINVAL)
