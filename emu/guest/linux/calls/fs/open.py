"""System calls that open files, copy and close descriptors, and change root and directory.

Source: Linux fs/open.c, fs/namei.c, fs/file.c, kernel/sys.c (umask).
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Final

from emu.guest.linux.calls.fs.attr import set_length
from emu.guest.linux.calls.table import (
    AT_FDCWD,
    Address,
    Blocking,
    Caller,
    Int,
    Path,
    PathAddress,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.errno import (
    E2BIG,
    EACCES,
    EAGAIN,
    EBADF,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENOTDIR,
    ENXIO,
    EPERM,
    LinuxError,
)
from emu.guest.linux.fs import devices
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.file_kinds import DirectoryOpen, GeneratedOpen, PathOnly, RegularOpen
from emu.guest.linux.fs.inode import Device, Fifo, Generated, Inode, Symlink
from emu.guest.linux.fs.inotify import IN_CLOSE_NOWRITE, IN_CLOSE_WRITE, IN_CREATE, IN_MODIFY, IN_OPEN
from emu.guest.linux.fs.namei import BENEATH, IN_ROOT, Dentry, path_of, walk
from emu.guest.linux.fs.nsfs import NameSpace, NameSpaceOpen
from emu.guest.linux.fs.open_file import (
    O_ACCMODE,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_PATH,
    O_RDONLY,
    O_TRUNC,
    O_WRONLY,
    OpenFile,
)
from emu.guest.linux.fs.pipe import open_fifo
from emu.guest.linux.fs.proc.mem import MemoryFile, MemoryOpen
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.ipc.mqueue import QueueInode, QueueOpen
from emu.guest.linux.process.cred import READ, SEARCH, WRITE, Capability
from emu.guest.linux.process.process import unshare_files

_O_TMPFILE: Final = 0o20000000
# All flags of open (VALID_OPEN_FLAGS): the same bits on all ISAs, though some are named otherwise.
_KNOWN: Final = 0o37777703
# struct open_how; its later versions may be as large as a page.
_HOW: Final = struct.Struct("<QQQ")
_LARGEST_HOW: Final = 4096
# RESOLVE_CACHED, and all that openat2 knows.
_CACHED, _WAYS = 0x20, 0x3F
_CLOSE_RANGE_UNSHARE, _CLOSE_RANGE_CLOEXEC = 2, 4
# The permissions that a mode needs: 3 is for reading and writing too, where only ioctl is meant.
_WANTED: Final = (READ, WRITE, READ | WRITE, READ | WRITE)


def open_inode(c: Caller, dentry: Dentry, flags: int, *, made: bool = False) -> OpenFile:
    """Open what a path leads to; with `made` it is a new file, whose permissions say nothing.

    Raises `LinuxError`.
    """
    inode = dentry.found()
    path = path_of(c.process.surroundings.root, dentry.directory, dentry.name)
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
        case MemoryFile():
            if not inode.process.may_be_traced(c.process.credentials):
                raise LinuxError(EACCES)
            return MemoryOpen(inode, flags, path)
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
    """Open a file; create it if O_CREAT is set."""
    _check(c, flags, mode, way)
    path = c.path(path_at)
    special = c.kernel.abi.open_flags
    follow = not flags & special.no_follow and not (flags & O_CREAT and flags & O_EXCL)
    if flags & _O_TMPFILE and flags & special.directory:
        c.need(c.dentry(directory, path, way=way).found(), WRITE | SEARCH)
        unnamed = _new_file(c, mode, None)
        file: OpenFile = RegularOpen(unnamed, flags, path, c.kernel.wall, c.kernel.file_memory)
        return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))
    dentry = c.dentry(directory, path, follow=follow, way=way)
    made = dentry.inode is None
    if made and flags & O_CREAT:
        if dentry.must_be_directory:
            raise LinuxError(EISDIR)
        c.need(dentry.directory, WRITE | SEARCH)
        inode = _new_file(c, mode, dentry.directory)
        dentry.directory.add(dentry.name, inode)
        dentry.directory.modified = dentry.directory.changed = c.kernel.wall()
        dentry = dentry._replace(inode=inode)
        c.kernel.watches.tell_name(dentry.directory, IN_CREATE, dentry.name, inode)
    elif dentry.inode is not None and flags & O_CREAT and flags & O_EXCL:
        raise LinuxError(EEXIST)
    if flags & special.directory and not isinstance(dentry.found(), Directory):
        raise LinuxError(ENOTDIR)
    inode_there = dentry.found()
    if isinstance(inode_there, Fifo) and not flags & O_PATH:
        c.need(inode_there, _WANTED[flags & O_ACCMODE])
        name = path_of(c.process.surroundings.root, dentry.directory, dentry.name)
        file = yield from open_fifo(c.kernel, inode_there, flags, name, c.kernel.abi.open_flags.direct)
    else:
        file = open_inode(c, dentry, flags, made=made)
        if isinstance(file, (RegularOpen, DirectoryOpen)):
            _watched(c, file)
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("openat")
def openat(c: Caller, directory: Int, path: PathAddress, flags: Unsigned, mode: Unsigned) -> Blocking:
    """Open a file; create it if O_CREAT is set."""
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


def _enter(c: Caller, inode: Inode) -> int:
    """Make a directory the working directory.  Raises `LinuxError`: ENOTDIR, EACCES."""
    if not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    c.need(inode, SEARCH)
    c.process.surroundings.directory = inode
    return 0


@call("chdir")
def chdir(c: Caller, path: Path) -> int:
    """Change the working directory."""
    return _enter(c, c.inode(AT_FDCWD, path))


@call("fchdir")
def fchdir(c: Caller, fd: Int) -> int:
    """Change the working directory."""
    return _enter(c, c.file(fd).inode)


@call("chroot")
def chroot(c: Caller, path: Path) -> int:
    """Change the root: `..` will not leave it."""
    around = c.process.surroundings
    inode = walk(around.root, around.directory, path, credentials=c.process.credentials).found()
    if not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    if not c.process.credentials.can(Capability.SYS_CHROOT):
        raise LinuxError(EPERM)
    around.root = inode
    return 0


@call("umask")
def umask(c: Caller, mask: Unsigned) -> int:
    """Set the file mode creation mask."""
    old, c.process.surroundings.umask = c.process.surroundings.umask, mask & 0o777
    return old
