"""System calls that open files, and what is done with descriptors.

Source: Linux fs/open.c, fs/namei.c, fs/fcntl.c, fs/file.c.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Final

from emu.guest.linux.calls.fs import memfd_seals
from emu.guest.linux.calls.fs.fcntl_owner import COMMANDS, own, set_async
from emu.guest.linux.calls.fs.locks import is_record_command, record
from emu.guest.linux.calls.fs.truncate import set_length
from emu.guest.linux.calls.table import (
    AT_FDCWD,
    Address,
    Blocking,
    Caller,
    Int,
    Long,
    PathAddress,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.errno import (
    E2BIG,
    EAGAIN,
    EBADF,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENOTDIR,
    ENXIO,
    LinuxError,
)
from emu.guest.linux.fs import devices
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.file_kinds import DirectoryOpen, GeneratedOpen, PathOnly, RegularOpen
from emu.guest.linux.fs.inode import Device, Fifo, Generated, Symlink
from emu.guest.linux.fs.inotify import IN_CLOSE_NOWRITE, IN_CLOSE_WRITE, IN_CREATE, IN_MODIFY, IN_OPEN
from emu.guest.linux.fs.namei import BENEATH, IN_ROOT, Place, path_of
from emu.guest.linux.fs.nsfs import NameSpace, NameSpaceOpen
from emu.guest.linux.fs.open_file import (
    O_ACCMODE,
    O_ASYNC,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_PATH,
    O_RDONLY,
    O_TRUNC,
    O_WRONLY,
    SETTABLE,
    OpenFile,
)
from emu.guest.linux.fs.pipe import PipeEnd, open_fifo
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.ipc.mqueue import QueueInode, QueueOpen
from emu.guest.linux.process.cred import READ, SEARCH, WRITE
from emu.guest.linux.process.unshare import unshare_files

_O_TMPFILE: Final = 0o20000000
# All flags of open (VALID_OPEN_FLAGS): the same bits on all ISAs, though some are named otherwise.
_KNOWN: Final = 0o37777703
# struct open_how; its later versions may be as large as a page.
_HOW: Final = struct.Struct("<QQQ")
_LARGEST_HOW: Final = 4096
# RESOLVE_CACHED, and all that openat2 knows.
_CACHED, _WAYS = 0x20, 0x3F
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL = range(5)
_CLOSE_RANGE_UNSHARE, _CLOSE_RANGE_CLOEXEC = 2, 4
_F_DUPFD_CLOEXEC, _F_SETPIPE_SZ, _F_GETPIPE_SZ = 1030, 1031, 1032
# The operations on a descriptor that only represents a path.
_OF_PATHS: Final = frozenset({_F_DUPFD, _F_DUPFD_CLOEXEC, _F_GETFD, _F_SETFD, _F_GETFL})


# The permissions that a mode needs: 3 is for reading and writing too, where only ioctl is meant.
_WANTED: Final = (READ, WRITE, READ | WRITE, READ | WRITE)


def open_inode(c: Caller, place: Place, flags: int, *, made: bool = False) -> OpenFile:
    """Open what a path leads to; with `made` it is a new file, whose permissions say nothing.

    Raises `LinuxError`.
    """
    inode = place.found()
    path = path_of(c.process.surroundings.root, place.directory, place.name)
    if flags & O_PATH:
        return PathOnly(inode, flags, path)
    if not isinstance(inode, Symlink) and not made:
        c.need(inode, _WANTED[flags & O_ACCMODE] | (WRITE if flags & O_TRUNC else 0))
    match inode:
        case Symlink():
            raise LinuxError(ELOOP)
        case Directory():
            if flags & O_ACCMODE != O_RDONLY or flags & O_CREAT:
                raise LinuxError(EISDIR)
            return DirectoryOpen(inode, flags, path)
        case Generated():
            return GeneratedOpen(inode, flags, path)
        case NameSpace():
            return NameSpaceOpen(inode, flags)
        case QueueInode():
            return QueueOpen(inode, flags, path, c.process)
        case Device():
            return devices.open_device(c.kernel, inode, flags, path)
        case RegularFile():
            if flags & O_TRUNC:
                inode.need_no_execution()
                set_length(c, inode, 0)
            if flags & O_ACCMODE != O_RDONLY:
                inode.need_no_execution()
            return RegularOpen(inode, flags, path, c.kernel.wall, c.kernel.file_memory)
        case _:
            raise LinuxError(ENXIO)


def _new_file(c: Caller, mode: int, directory: Directory | None) -> RegularFile:
    inode = RegularFile(mode & 0o7777 & ~c.process.surroundings.umask, c.kernel.wall())
    c.process.credentials.give(inode, directory)
    return inode


def _watched(c: Caller, file: OpenFile) -> None:
    """Report the watchers of a file that it is open, and in the end that it is closed."""
    watches, inode = c.kernel.watches, file.inode
    if file.flags & O_TRUNC and file.can_write:
        watches.tell(inode, IN_MODIFY)
    watches.tell(inode, IN_OPEN)
    file.closing = partial(watches.tell, inode, IN_CLOSE_WRITE if file.can_write else IN_CLOSE_NOWRITE)


def _check(c: Caller, flags: int, mode: int, way: int) -> None:
    """Check the arguments of an open before the path is read (build_open_flags).

    Raises `LinuxError`: EINVAL, EAGAIN.
    """
    directory, temporary = flags & c.kernel.abi.open_flags.directory, flags & _O_TMPFILE
    creates = bool(flags & (O_CREAT | _O_TMPFILE))
    wrong = (
        flags & ~_KNOWN,
        way & ~_WAYS,
        way & BENEATH and way & IN_ROOT,
        mode & ~0o7777 if creates else mode,
        directory and flags & O_CREAT,
        temporary and not (directory and flags & O_ACCMODE),
        flags & O_PATH and flags & ~(O_PATH | O_CLOEXEC | directory | c.kernel.abi.open_flags.no_follow),
    )
    if any(wrong):
        raise LinuxError(EINVAL)
    if way & _CACHED and flags & (O_TRUNC | O_CREAT | _O_TMPFILE):
        raise LinuxError(EAGAIN)


def _as_open(c: Caller, flags: int, mode: int) -> tuple[int, int]:
    """Return the flags and mode of an older call without what it takes no notice of."""
    special = c.kernel.abi.open_flags
    flags &= _KNOWN
    if flags & O_PATH:
        flags &= O_PATH | O_CLOEXEC | special.directory | special.no_follow
    return flags, mode & 0o7777 if flags & (O_CREAT | _O_TMPFILE) else 0


def _open(c: Caller, directory: int, path_at: int, flags: int, mode: int, way: int = 0) -> Blocking:
    """Open a file, made if need be."""
    _check(c, flags, mode, way)
    path = c.path(path_at)
    special = c.kernel.abi.open_flags
    follow = not flags & special.no_follow and not (flags & O_CREAT and flags & O_EXCL)
    if flags & _O_TMPFILE and flags & special.directory:
        c.need(c.place(directory, path, way=way).found(), WRITE | SEARCH)
        unnamed = _new_file(c, mode, None)
        file: OpenFile = RegularOpen(unnamed, flags, path, c.kernel.wall, c.kernel.file_memory)
        return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))
    place = c.place(directory, path, follow=follow, way=way)
    made = place.inode is None
    if made and flags & O_CREAT:
        if place.must_be_directory:
            raise LinuxError(EISDIR)
        c.need(place.directory, WRITE | SEARCH)
        inode = _new_file(c, mode, place.directory)
        place.directory.add(place.name, inode)
        place.directory.modified = place.directory.changed = c.kernel.wall()
        place = place._replace(inode=inode)
        c.kernel.watches.tell_name(place.directory, IN_CREATE, place.name, inode)
    elif place.inode is not None and flags & O_CREAT and flags & O_EXCL:
        raise LinuxError(EEXIST)
    if flags & special.directory and not isinstance(place.found(), Directory):
        raise LinuxError(ENOTDIR)
    inode_there = place.found()
    if isinstance(inode_there, Fifo) and not flags & O_PATH:
        c.need(inode_there, _WANTED[flags & O_ACCMODE])
        name = path_of(c.process.surroundings.root, place.directory, place.name)
        file = yield from open_fifo(c.kernel, inode_there, flags, name, c.kernel.abi.open_flags.direct)
    else:
        file = open_inode(c, place, flags, made=made)
        if isinstance(file, (RegularOpen, DirectoryOpen)):
            _watched(c, file)
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("openat")
def openat(c: Caller, directory: Int, path: PathAddress, flags: Unsigned, mode: Unsigned) -> Blocking:
    """Open a file, made if need be."""
    return (yield from _open(c, directory, path, *_as_open(c, flags, mode)))


@call("open")
def open_(c: Caller, path: PathAddress, flags: Unsigned, mode: Unsigned) -> Blocking:
    """Open a file."""
    return (yield from openat(c, AT_FDCWD, path, flags, mode))


@call("openat2")
def openat2(c: Caller, directory: Int, path: PathAddress, how: Address, size: Size) -> Blocking:
    """Open a file, and say how the path may be followed.

    All is one file system here, whatever RESOLVE_NO_XDEV says.
    """
    if size < _HOW.size:
        raise LinuxError(EINVAL)
    if size > _LARGEST_HOW:
        raise LinuxError(E2BIG)
    data = c.read(how, size)
    if any(data[_HOW.size :]):
        raise LinuxError(E2BIG)
    flags, mode, way = _HOW.unpack_from(data)
    return (yield from _open(c, directory, path, flags, mode, way))


@call("creat")
def creat(c: Caller, path: PathAddress, mode: Unsigned) -> Blocking:
    """Make a file and open it for writing."""
    return (yield from openat(c, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode))


@call("close")
def close(c: Caller, fd: Int) -> int:
    """Close a descriptor."""
    c.process.files.close(fd)
    return 0


@call("close_range")
def close_range(c: Caller, first: Unsigned, last: Unsigned, flags: Unsigned) -> int:
    """Close descriptors, or have them closed by exec."""
    if first > last or flags & ~(_CLOSE_RANGE_UNSHARE | _CLOSE_RANGE_CLOEXEC):
        raise LinuxError(EINVAL)
    if flags & _CLOSE_RANGE_UNSHARE:
        unshare_files(c.thread)
    for fd in list(c.process.files):
        if first <= fd <= last:
            if flags & _CLOSE_RANGE_CLOEXEC:
                c.process.files.set_close_on_exec(fd, close=True)
            else:
                c.process.files.close(fd)
    return 0


@call("dup")
def dup(c: Caller, fd: Int) -> int:
    """Give an open file another number."""
    return c.process.files.add(c.file(fd))


@call("dup3")
def dup3(c: Caller, fd: Int, new: Int, flags: Unsigned) -> int:
    """Give an open file this number."""
    if fd == new or flags & ~O_CLOEXEC:
        raise LinuxError(EINVAL)
    if not 0 <= new < c.process.files.limit:
        raise LinuxError(EBADF)
    c.process.files.put(new, c.file(fd), close_on_exec=bool(flags & O_CLOEXEC))
    return new


@call("dup2")
def dup2(c: Caller, fd: Int, new: Int) -> int:
    """Give an open file this number."""
    if fd == new:
        c.file(fd)
        return new
    return dup3(c, fd, new, 0)


@call("fcntl")
def fcntl(c: Caller, fd: Int, command: Unsigned, argument: Long) -> Blocking:
    """Look at a descriptor, or change it."""
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
    if command in COMMANDS:
        return own(c, file, command, argument)
    if command in {_F_GETPIPE_SZ, _F_SETPIPE_SZ}:
        if not isinstance(file, PipeEnd):
            raise LinuxError(EBADF)
        return file.pipe.capacity if command == _F_GETPIPE_SZ else file.pipe.resize(argument)
    if command in memfd_seals.COMMANDS:
        return memfd_seals.seal(c, file, command, argument & 0xFFFF_FFFF)
    raise LinuxError(EINVAL)
