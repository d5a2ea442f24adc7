"""System calls about names, directories and what inodes say of themselves.

Source: Linux fs/namei.c, fs/stat.c, fs/open.c.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Generator
from typing import Final

from emu.guest.linux import devices
from emu.guest.linux.abi.base import times
from emu.guest.linux.abi.errno import (
    EBADF,
    EBUSY,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENODATA,
    ENOENT,
    ENOTDIR,
    ENXIO,
    EPERM,
    ERANGE,
    LinuxError,
)
from emu.guest.linux.calls.table import AT_FDCWD, Address, Blocking, Caller, Int, Long, Path, Size, Unsigned, call
from emu.guest.linux.files import (
    O_ACCMODE,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    SETTABLE,
    DirectoryOpen,
    OpenFile,
    PathOnly,
    Pipe,
    PipeEnd,
    RegularOpen,
    Snapshot,
)
from emu.guest.linux.inodes import Device, Directory, Fifo, Generated, Inode, RegularFile, Socket, Symlink
from emu.guest.linux.paths import Place, path_of, walk
from emu.guest.linux.process import Wait

_AT_SYMLINK_NOFOLLOW: Final = 0x100
_AT_REMOVEDIR: Final = 0x200
_AT_SYMLINK_FOLLOW: Final = 0x400
_AT_EMPTY_PATH: Final = 0x1000
_O_TMPFILE: Final = 0o20000000
_UTIME_NOW, _UTIME_OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_GETLK, _F_SETLK, _F_SETLKW = range(8)
_F_DUPFD_CLOEXEC, _F_SETPIPE_SZ, _F_GETPIPE_SZ = 1030, 1031, 1032
_F_UNLCK: Final = 2
_STATX: Final = struct.Struct("<IIQIIIHHQQQQ" + "qII" * 4 + "IIIIQII96x")
_STATX_BASIC: Final = 0x7FF
_STATFS: Final = struct.Struct("<qqQQQQQiiqqq32x")
_TMPFS_MAGIC: Final = 0x01021994
_PROC_MAGIC: Final = 0x9FA0
_SECOND: Final = 1_000_000_000


# Opening


def open_inode(c: Caller, place: Place, flags: int) -> OpenFile:
    """Open what a path leads to.  Raises `LinuxError`."""
    inode = place.found()
    path = path_of(c.process.surroundings.root, place.directory, place.name)
    if flags & O_PATH:
        return PathOnly(inode, flags, path)
    match inode:
        case Symlink():
            raise LinuxError(ELOOP)
        case Directory():
            if flags & O_ACCMODE != O_RDONLY or flags & O_CREAT:
                raise LinuxError(EISDIR)
            return DirectoryOpen(inode, flags, path)
        case Generated():
            return Snapshot(inode, flags, path)
        case Device():
            return devices.open_device(c.kernel, inode, flags, path)
        case RegularFile():
            if flags & O_TRUNC and flags & O_ACCMODE != O_RDONLY:
                inode.truncate(0)
                inode.modified = inode.changed = c.kernel.wall()
            return RegularOpen(inode, flags, path, c.kernel.wall)
        case _:
            raise LinuxError(ENXIO)


def _open_fifo(inode: Fifo, flags: int, path: str) -> Generator[Wait, bool, PipeEnd]:
    """Open a named pipe: it waits for the other side."""
    pipe = inode.pipe if isinstance(inode.pipe, Pipe) else Pipe()
    inode.pipe = pipe
    mode = flags & O_ACCMODE
    if mode == O_WRONLY and flags & O_NONBLOCK and not pipe.readers:
        raise LinuxError(ENXIO)
    end = PipeEnd(pipe, inode, flags, path)
    if not flags & O_NONBLOCK and mode != O_RDWR:
        others = "writers" if mode == O_RDONLY else "readers"
        while not getattr(pipe, others):
            try:
                yield Wait(lambda: bool(getattr(pipe, others)))
            except BaseException:
                end.closed()
                raise
    return end


@call("openat")
def openat(c: Caller, directory: Int, path: Path, flags: Unsigned, mode: Unsigned) -> Blocking:
    """Open a file, made if need be."""
    special = c.kernel.abi.open_flags
    follow = not flags & special.no_follow and not (flags & O_CREAT and flags & O_EXCL)
    if flags & _O_TMPFILE and flags & special.directory:
        c.inode(directory, path)
        file: OpenFile = RegularOpen(
            RegularFile(mode & ~c.process.surroundings.umask, c.kernel.wall()), flags, path, c.kernel.wall
        )
        return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))
    place = c.place(directory, path, follow=follow)
    if place.inode is None and flags & O_CREAT:
        if place.must_be_directory:
            raise LinuxError(EISDIR)
        inode = RegularFile(mode & 0o7777 & ~c.process.surroundings.umask, c.kernel.wall())
        place.directory.add(place.name, inode)
        place.directory.modified = place.directory.changed = c.kernel.wall()
        place = place._replace(inode=inode)
    elif place.inode is not None and flags & O_CREAT and flags & O_EXCL:
        raise LinuxError(EEXIST)
    if flags & special.directory and not isinstance(place.found(), Directory):
        raise LinuxError(ENOTDIR)
    inode_there = place.found()
    if isinstance(inode_there, Fifo) and not flags & O_PATH:
        name = path_of(c.process.surroundings.root, place.directory, place.name)
        file = yield from _open_fifo(inode_there, flags, name)
    else:
        file = open_inode(c, place, flags)
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("open")
def open_(c: Caller, path: Path, flags: Unsigned, mode: Unsigned) -> Blocking:
    """Open a file."""
    return (yield from openat(c, AT_FDCWD, path, flags, mode))


@call("openat2")
def openat2(c: Caller, directory: Int, path: Path, how: Address, size: Size) -> Blocking:
    """Open a file; how the path may be followed is not looked at."""
    if size < 24:
        raise LinuxError(EINVAL)
    flags, mode, _resolve = struct.unpack("<QQQ", c.read(how, 24))
    return (yield from openat(c, directory, path, flags & 0xFFFF_FFFF, mode & 0o7777))


@call("creat")
def creat(c: Caller, path: Path, mode: Unsigned) -> Blocking:
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
    if first > last or flags & ~6:
        raise LinuxError(EINVAL)
    for fd in list(c.process.files):
        if first <= fd <= last:
            if flags & 4:
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
def fcntl(c: Caller, fd: Int, command: Unsigned, argument: Long) -> int:
    """Look at a descriptor, or change it.  All locks are granted: there is one writer at a time anyway."""
    file, files = c.file(fd), c.process.files
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
        return 0
    if command == _F_GETLK:
        c.write(argument, struct.pack("<h", _F_UNLCK))
        return 0
    if command in {_F_SETLK, _F_SETLKW, 36, 37, 38}:
        return 0
    if command == _F_GETPIPE_SZ and isinstance(file, PipeEnd):
        return file.pipe.size
    if command == _F_SETPIPE_SZ and isinstance(file, PipeEnd):
        file.pipe.size = max(4096, 1 << (max(argument, 1) - 1).bit_length())
        return file.pipe.size
    raise LinuxError(EINVAL)


# Looking


def _stat(c: Caller, inode: Inode, buffer: int) -> int:
    c.write(buffer, c.kernel.abi.stat(inode))
    return 0


def _at(c: Caller, directory: int, path: str, flags: int) -> Inode:
    if not path and flags & _AT_EMPTY_PATH:
        return c.process.surroundings.directory if directory == AT_FDCWD else c.file(directory).inode
    return c.inode(directory, path, follow=not flags & _AT_SYMLINK_NOFOLLOW)


@call("newfstatat")
def newfstatat(c: Caller, directory: Int, path: Path, buffer: Address, flags: Unsigned) -> int:
    """Tell about a file."""
    return _stat(c, _at(c, directory, path, flags), buffer)


@call("stat")
def stat_(c: Caller, path: Path, buffer: Address) -> int:
    """Tell about a file."""
    return _stat(c, c.inode(AT_FDCWD, path), buffer)


@call("lstat")
def lstat(c: Caller, path: Path, buffer: Address) -> int:
    """Tell about a file, or a symbolic link."""
    return _stat(c, c.inode(AT_FDCWD, path, follow=False), buffer)


@call("fstat")
def fstat(c: Caller, fd: Int, buffer: Address) -> int:
    """Tell about an open file."""
    return _stat(c, c.file(fd).inode, buffer)


@call("statx")
def statx(c: Caller, directory: Int, path: Path, flags: Unsigned, mask: Unsigned, buffer: Address) -> int:
    """Tell about a file."""
    del mask
    inode = _at(c, directory, path, flags)
    access, access_ns, change, change_ns, status, status_ns = times(inode)
    c.write(
        buffer,
        _STATX.pack(
            _STATX_BASIC, 4096, 0, inode.links, inode.uid, inode.gid, inode.mode, 0, inode.number, inode.size,
            -(-inode.size // 4096) * 8, 0,
            access, access_ns, 0, 0, 0, 0, status, status_ns, 0, change, change_ns, 0,
            inode.device >> 8, inode.device & 0xFF, 0, 1, 0, 0, 0,
        ),
    )  # fmt: skip
    return 0


@call("faccessat2")
def faccessat2(c: Caller, directory: Int, path: Path, mode: Unsigned, flags: Unsigned) -> int:
    """Tell whether a file is there; to root everything is allowed but running what nobody may run."""
    inode = _at(c, directory, path, flags)
    if mode & 1 and stat.S_ISREG(inode.mode) and not inode.permissions & 0o111:
        raise LinuxError(13)  # EACCES
    return 0


@call("faccessat")
def faccessat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Tell whether a file is there."""
    return faccessat2(c, directory, path, mode, 0)


@call("access")
def access(c: Caller, path: Path, mode: Unsigned) -> int:
    """Tell whether a file is there."""
    return faccessat2(c, AT_FDCWD, path, mode, 0)


@call("readlinkat")
def readlinkat(c: Caller, directory: Int, path: Path, buffer: Address, size: Int) -> int:
    """Read a symbolic link."""
    if size <= 0:
        raise LinuxError(EINVAL)
    inode = c.file(directory).inode if not path else c.inode(directory, path, follow=False)
    if not isinstance(inode, Symlink):
        raise LinuxError(EINVAL)
    text = inode.target.encode("utf-8", "surrogateescape")[:size]
    c.write(buffer, text)
    return len(text)


@call("readlink")
def readlink(c: Caller, path: Path, buffer: Address, size: Int) -> int:
    """Read a symbolic link."""
    return readlinkat(c, AT_FDCWD, path, buffer, size)


@call("getdents64")
def getdents64(c: Caller, fd: Int, buffer: Address, size: Unsigned) -> int:
    """Read entries of a directory."""
    file = c.file(fd)
    if not isinstance(file, DirectoryOpen):
        raise LinuxError(ENOTDIR)
    data = bytearray()
    entries = file.entries()
    while file.position < len(entries):
        name, inode = entries[file.position]
        text = name.encode("utf-8", "surrogateescape") + b"\0"
        length = -(-(19 + len(text)) // 8) * 8
        if len(data) + length > size:
            if not data:
                raise LinuxError(EINVAL)
            break
        file.position += 1
        entry = struct.pack("<QqHB", inode.number, file.position, length, inode.kind >> 12) + text
        data += entry.ljust(length, b"\0")
    c.write(buffer, bytes(data))
    return len(data)


@call("getcwd")
def getcwd(c: Caller, buffer: Address, size: Size) -> int:
    """Tell the working directory."""
    around = c.process.surroundings
    text = path_of(around.root, around.directory).encode("utf-8", "surrogateescape") + b"\0"
    if len(text) > size:
        raise LinuxError(ERANGE)
    c.write(buffer, text)
    return len(text)


def _statfs(c: Caller, inode: Inode, buffer: int) -> int:
    magic = _PROC_MAGIC if isinstance(inode, Generated) else _TMPFS_MAGIC
    c.write(buffer, _STATFS.pack(magic, 4096, 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 0, 0, 255, 4096, 0))
    return 0


@call("statfs")
def statfs(c: Caller, path: Path, buffer: Address) -> int:
    """Tell about the file system: it is one in memory."""
    return _statfs(c, c.inode(AT_FDCWD, path), buffer)


@call("fstatfs")
def fstatfs(c: Caller, fd: Int, buffer: Address) -> int:
    """Tell about the file system."""
    return _statfs(c, c.file(fd).inode, buffer)


@call("getxattr", "lgetxattr", "fgetxattr")
def getxattr(c: Caller) -> int:
    """Say that there are no extended attributes."""
    del c
    raise LinuxError(ENODATA)


@call("listxattr", "llistxattr", "flistxattr")
def listxattr(c: Caller) -> int:
    """List no extended attributes."""
    del c
    return 0


@call("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
def setxattr(c: Caller) -> int:
    """Refuse extended attributes."""
    del c
    raise LinuxError(95)  # EOPNOTSUPP


# Changing


def _new_place(c: Caller, directory: int, path: str) -> Place:
    """Return where something new goes.  Raises `LinuxError` EEXIST."""
    place = c.place(directory, path, follow=False)
    if place.inode is not None:
        raise LinuxError(EEXIST)
    return place


def _touch(c: Caller, *inodes: Inode) -> None:
    for inode in inodes:
        inode.modified = inode.changed = c.kernel.wall()


def _is_procfs(directory: Directory) -> bool:
    return type(directory) is not Directory


def _add(c: Caller, place: Place, inode: Inode) -> int:
    if _is_procfs(place.directory):
        raise LinuxError(EPERM)
    place.directory.add(place.name, inode)
    _touch(c, place.directory)
    return 0


@call("mkdirat")
def mkdirat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Make a directory."""
    place = _new_place(c, directory, path)
    return _add(c, place, Directory(mode & 0o1777 & ~c.process.surroundings.umask, c.kernel.wall()))


@call("mkdir")
def mkdir(c: Caller, path: Path, mode: Unsigned) -> int:
    """Make a directory."""
    return mkdirat(c, AT_FDCWD, path, mode)


@call("mknodat")
def mknodat(c: Caller, directory: Int, path: Path, mode: Unsigned, device: Unsigned) -> int:
    """Make a file, a named pipe, a socket or a device."""
    place = _new_place(c, directory, path)
    permissions = mode & 0o7777 & ~c.process.surroundings.umask
    kind = stat.S_IFMT(mode) or stat.S_IFREG
    wall = c.kernel.wall()
    inode: Inode
    if kind == stat.S_IFREG:
        inode = RegularFile(permissions, wall)
    elif kind == stat.S_IFIFO:
        inode = Fifo(permissions, wall)
    elif kind == stat.S_IFSOCK:
        inode = Socket(permissions, wall)
    elif kind == stat.S_IFCHR:
        inode = Device(devices.DRIVERS.get(device, ""), device, permissions, wall)
    else:
        raise LinuxError(EPERM)
    return _add(c, place, inode)


@call("mknod")
def mknod(c: Caller, path: Path, mode: Unsigned, device: Unsigned) -> int:
    """Make a file."""
    return mknodat(c, AT_FDCWD, path, mode, device)


@call("symlinkat")
def symlinkat(c: Caller, target: Path, directory: Int, path: Path) -> int:
    """Make a symbolic link."""
    if not target:
        raise LinuxError(ENOENT)
    place = _new_place(c, directory, path)
    if place.must_be_directory:
        raise LinuxError(ENOENT)
    return _add(c, place, Symlink(target, c.kernel.wall()))


@call("symlink")
def symlink(c: Caller, target: Path, path: Path) -> int:
    """Make a symbolic link."""
    return symlinkat(c, target, AT_FDCWD, path)


@call("linkat")
def linkat(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path, flags: Unsigned) -> int:
    """Give a file another name."""
    if not old and flags & _AT_EMPTY_PATH:
        inode = c.file(old_at).inode
    else:
        inode = c.inode(old_at, old, follow=bool(flags & _AT_SYMLINK_FOLLOW))
    if isinstance(inode, Directory):
        raise LinuxError(EPERM)
    result = _add(c, _new_place(c, new_at, new), inode)
    inode.links += 1
    inode.changed = c.kernel.wall()
    return result


@call("link")
def link(c: Caller, old: Path, new: Path) -> int:
    """Give a file another name."""
    return linkat(c, AT_FDCWD, old, AT_FDCWD, new, 0)


@call("unlinkat")
def unlinkat(c: Caller, directory: Int, path: Path, flags: Unsigned) -> int:
    """Take a name away."""
    place = c.place(directory, path, follow=False)
    inode = place.found()
    if flags & _AT_REMOVEDIR:
        if not isinstance(inode, Directory):
            raise LinuxError(ENOTDIR)
        if not place.name:
            raise LinuxError(EINVAL if path.endswith(".") else EBUSY)
        if path.rstrip("/").endswith("/.") or path == ".":
            raise LinuxError(EINVAL)
    elif isinstance(inode, Directory):
        raise LinuxError(EISDIR)
    if _is_procfs(place.directory):
        raise LinuxError(EPERM)
    place.directory.remove(place.name)
    _touch(c, place.directory)
    inode.changed = c.kernel.wall()
    return 0


@call("unlink")
def unlink(c: Caller, path: Path) -> int:
    """Take a name away."""
    return unlinkat(c, AT_FDCWD, path, 0)


@call("rmdir")
def rmdir(c: Caller, path: Path) -> int:
    """Take a directory away."""
    return unlinkat(c, AT_FDCWD, path, _AT_REMOVEDIR)


@call("renameat2")
def renameat2(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path, flags: Unsigned) -> int:
    """Give something another name."""
    source = c.place(old_at, old, follow=False)
    target = c.place(new_at, new, follow=False)
    inode = source.found()
    if not source.name or not target.name or _is_procfs(source.directory) or _is_procfs(target.directory):
        raise LinuxError(EBUSY)
    if isinstance(inode, Directory):
        above: Directory = target.directory
        while above is not above.parent:
            if above is inode:
                raise LinuxError(EINVAL)
            above = above.parent
    if target.inode is inode:
        return 0
    if flags & _RENAME_NOREPLACE and target.inode is not None:
        raise LinuxError(EEXIST)
    if flags & _RENAME_EXCHANGE:
        other = target.found()
        entries = source.directory.entries(), target.directory.entries()
        entries[0][source.name], entries[1][target.name] = other, inode
        return 0
    if target.inode is not None:
        if isinstance(target.inode, Directory) is not isinstance(inode, Directory):
            raise LinuxError(EISDIR if isinstance(target.inode, Directory) else ENOTDIR)
        target.directory.remove(target.name)
    del source.directory.entries()[source.name]
    if isinstance(inode, Directory):
        source.directory.links -= 1
    target.directory.add(target.name, inode)
    _touch(c, source.directory, target.directory)
    inode.changed = c.kernel.wall()
    return 0


@call("renameat")
def renameat(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path) -> int:
    """Give something another name."""
    return renameat2(c, old_at, old, new_at, new, 0)


@call("rename")
def rename(c: Caller, old: Path, new: Path) -> int:
    """Give something another name."""
    return renameat2(c, AT_FDCWD, old, AT_FDCWD, new, 0)


@call("truncate")
def truncate(c: Caller, path: Path, size: Long) -> int:
    """Make a file this long."""
    inode = c.inode(AT_FDCWD, path)
    if isinstance(inode, Directory):
        raise LinuxError(EISDIR)
    if not isinstance(inode, RegularFile) or size < 0:
        raise LinuxError(EINVAL)
    inode.truncate(size)
    _touch(c, inode)
    return 0


def _chmod(c: Caller, inode: Inode, mode: int) -> int:
    if isinstance(inode, Symlink):
        raise LinuxError(95)  # EOPNOTSUPP
    inode.permissions = mode & 0o7777
    inode.changed = c.kernel.wall()
    return 0


@call("fchmodat")
def fchmodat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Change permissions."""
    return _chmod(c, c.inode(directory, path), mode)


@call("fchmodat2")
def fchmodat2(c: Caller, directory: Int, path: Path, mode: Unsigned, flags: Unsigned) -> int:
    """Change permissions."""
    return _chmod(c, _at(c, directory, path, flags), mode)


@call("chmod")
def chmod(c: Caller, path: Path, mode: Unsigned) -> int:
    """Change permissions."""
    return _chmod(c, c.inode(AT_FDCWD, path), mode)


@call("fchmod")
def fchmod(c: Caller, fd: Int, mode: Unsigned) -> int:
    """Change permissions of an open file."""
    return _chmod(c, c.file(fd).inode, mode)


def _chown(c: Caller, inode: Inode, uid: int, gid: int) -> int:
    inode.uid = inode.uid if uid == -1 else uid
    inode.gid = inode.gid if gid == -1 else gid
    inode.changed = c.kernel.wall()
    return 0


@call("fchownat")
def fchownat(c: Caller, directory: Int, path: Path, uid: Int, gid: Int, flags: Unsigned) -> int:
    """Change the owner."""
    return _chown(c, _at(c, directory, path, flags), uid, gid)


@call("chown")
def chown(c: Caller, path: Path, uid: Int, gid: Int) -> int:
    """Change the owner."""
    return _chown(c, c.inode(AT_FDCWD, path), uid, gid)


@call("lchown")
def lchown(c: Caller, path: Path, uid: Int, gid: Int) -> int:
    """Change the owner of a file, or of a symbolic link."""
    return _chown(c, c.inode(AT_FDCWD, path, follow=False), uid, gid)


@call("fchown")
def fchown(c: Caller, fd: Int, uid: Int, gid: Int) -> int:
    """Change the owner of an open file."""
    return _chown(c, c.file(fd).inode, uid, gid)


def _set_times(c: Caller, inode: Inode, accessed: int | None, modified: int | None) -> int:
    if accessed is not None:
        inode.accessed = accessed
    if modified is not None:
        inode.modified = modified
    inode.changed = c.kernel.wall()
    return 0


@call("utimensat")
def utimensat(c: Caller, directory: Int, path: Address, at: Address, flags: Unsigned) -> int:
    """Set the times of a file."""
    inode = _at(c, directory, c.path(path), flags) if path else c.file(directory).inode
    wall = c.kernel.wall()
    if not at:
        return _set_times(c, inode, wall, wall)
    fields = struct.unpack("<qqqq", c.read(at, 32))
    chosen: list[int | None] = []
    for seconds, nanoseconds in (fields[:2], fields[2:]):
        if nanoseconds == _UTIME_OMIT:
            chosen.append(None)
        else:
            chosen.append(wall if nanoseconds == _UTIME_NOW else seconds * _SECOND + nanoseconds)
    return _set_times(c, inode, *chosen)


@call("utimes")
def utimes(c: Caller, path: Path, at: Address) -> int:
    """Set the times of a file."""
    inode, wall = c.inode(AT_FDCWD, path), c.kernel.wall()
    if not at:
        return _set_times(c, inode, wall, wall)
    fields = struct.unpack("<qqqq", c.read(at, 32))
    first, second = (seconds * _SECOND + rest * 1000 for seconds, rest in (fields[:2], fields[2:]))
    return _set_times(c, inode, first, second)


@call("utime")
def utime(c: Caller, path: Path, at: Address) -> int:
    """Set the times of a file."""
    inode, wall = c.inode(AT_FDCWD, path), c.kernel.wall()
    if not at:
        return _set_times(c, inode, wall, wall)
    accessed, modified = struct.unpack("<qq", c.read(at, 16))
    return _set_times(c, inode, accessed * _SECOND, modified * _SECOND)


# Where the process is


@call("chdir")
def chdir(c: Caller, path: Path) -> int:
    """Change the working directory."""
    inode = c.inode(AT_FDCWD, path)
    if not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    c.process.surroundings.directory = inode
    return 0


@call("fchdir")
def fchdir(c: Caller, fd: Int) -> int:
    """Change the working directory."""
    inode = c.file(fd).inode
    if not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    c.process.surroundings.directory = inode
    return 0


@call("chroot")
def chroot(c: Caller, path: Path) -> int:
    """Change the root: `..` will not leave it."""
    around = c.process.surroundings
    inode = walk(around.root, around.directory, path).found()
    if not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    around.root = inode
    return 0


@call("umask")
def umask(c: Caller, mask: Unsigned) -> int:
    """Set the file mode creation mask."""
    old, c.process.surroundings.umask = c.process.surroundings.umask, mask & 0o777
    return old
