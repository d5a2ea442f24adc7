"""System calls that tell about files: stat and related calls, links, directories, file systems.

Source: Linux fs/stat.c, fs/readdir.c, fs/statfs.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from emu.guest.linux.calls.table import AT_FDCWD, Address, Caller, Int, Path, Size, Unsigned, call
from emu.guest.linux.errno import (
    EINVAL,
    ENOTDIR,
    ERANGE,
    LinuxError,
)
from emu.guest.linux.fs.dir import Listing
from emu.guest.linux.fs.file_kinds import DirectoryOpen
from emu.guest.linux.fs.inode import Generated, Inode, Symlink, major_and_minor
from emu.guest.linux.fs.namei import path_of
from emu.guest.linux.fs.nsfs import NameSpace
from emu.guest.linux.process.cred import Ids
from emu.isa.linux_abi import blocks, times

_AT_SYMLINK_NOFOLLOW: Final = 0x100
_AT_EACCESS: Final = 0x200
_AT_EMPTY_PATH: Final = 0x1000
_STATX: Final = struct.Struct("<IIQIIIHHQQQQ" + "qII" * 4 + "IIIIQII96x")
_STATX_BASIC: Final = 0x7FF
_STATFS: Final = struct.Struct("<qqQQQQQiiqqq32x")
_TMPFS_MAGIC: Final = 0x01021994
_PROC_MAGIC: Final = 0x9FA0
_NSFS_MAGIC: Final = 0x6E73_6673
# The AT_ flags of stat, AT_NO_AUTOMOUNT and AT_STATX_SYNC_TYPE included.
_STAT_FLAGS: Final = _AT_SYMLINK_NOFOLLOW | _AT_EMPTY_PATH | 0x800 | 0x6000
_SYNC_TYPE: Final = 0x6000
# STATX__RESERVED.
_RESERVED_MASK: Final = 0x8000_0000


def _stat(c: Caller, inode: Inode, buffer: int) -> int:
    c.write(buffer, c.kernel.abi.stat(c.kernel.numbered(inode)))
    return 0


def inode_at(c: Caller, directory: int, path: str, flags: int) -> Inode:
    """Return what the calls with AT_ flags mean.  Raises `LinuxError`."""
    if not path and flags & _AT_EMPTY_PATH:
        return c.process.surroundings.directory if directory == AT_FDCWD else c.file(directory).inode
    return c.inode(directory, path, follow=not flags & _AT_SYMLINK_NOFOLLOW)


@call("newfstatat")
def newfstatat(c: Caller, directory: Int, path: Path, buffer: Address, flags: Unsigned) -> int:
    """Describe a file."""
    if flags & ~_STAT_FLAGS:
        raise LinuxError(EINVAL)
    return _stat(c, inode_at(c, directory, path, flags), buffer)


@call("stat")
def stat_(c: Caller, path: Path, buffer: Address) -> int:
    """Describe a file."""
    return _stat(c, c.inode(AT_FDCWD, path), buffer)


@call("lstat")
def lstat(c: Caller, path: Path, buffer: Address) -> int:
    """Describe a file, or a symbolic link."""
    return _stat(c, c.inode(AT_FDCWD, path, follow=False), buffer)


@call("fstat")
def fstat(c: Caller, fd: Int, buffer: Address) -> int:
    """Describe an open file."""
    return _stat(c, c.file(fd).inode, buffer)


@call("statx")
def statx(c: Caller, directory: Int, path: Path, flags: Unsigned, mask: Unsigned, buffer: Address) -> int:
    """Describe a file."""
    if mask & _RESERVED_MASK or flags & ~_STAT_FLAGS or flags & _SYNC_TYPE == _SYNC_TYPE:
        raise LinuxError(EINVAL)
    inode = c.kernel.numbered(inode_at(c, directory, path, flags))
    access, access_ns, change, change_ns, status, status_ns = times(inode)
    c.write(
        buffer,
        _STATX.pack(
            _STATX_BASIC, 4096, 0, inode.links, inode.uid, inode.gid, inode.mode, 0, inode.number, inode.size,
            blocks(inode), 0,
            access, access_ns, 0, 0, 0, 0, status, status_ns, 0, change, change_ns, 0,
            *major_and_minor(inode.device), 0, 1, 0, 0, 0,
        ),
    )  # fmt: skip
    return 0


@call("faccessat2")
def faccessat2(c: Caller, directory: Int, path: Path, mode: Unsigned, flags: Unsigned) -> int:
    """Check that the real user, or by a flag the effective one, may use a file."""
    if mode & ~7 or flags & ~(_AT_EACCESS | _AT_SYMLINK_NOFOLLOW | _AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    own = c.process.credentials
    asked = own.copy()
    if not flags & _AT_EACCESS:
        asked.user, asked.group = Ids.all(own.user.real), Ids.all(own.group.real)
        asked.effective = own.permitted if own.user.real == 0 else 0
    c.process.credentials = asked
    try:
        inode = inode_at(c, directory, path, flags)
        if mode:
            c.need(inode, mode)
    finally:
        c.process.credentials = own
    return 0


@call("faccessat")
def faccessat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Check that a file exists and may be accessed so."""
    return faccessat2(c, directory, path, mode, 0)


@call("access")
def access(c: Caller, path: Path, mode: Unsigned) -> int:
    """Check that a file exists and may be accessed so."""
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


def entries_of(c: Caller, fd: int, size: int, record: Callable[[int, int, bytes, int], bytes]) -> bytes:
    """Return as many entries of a directory as fit.

    `record` makes one of inode, position, name and kind.

    Raises `LinuxError`: EBADF, ENOTDIR, EINVAL if not even one fits.
    """
    file = c.file(fd)
    if not isinstance(file, DirectoryOpen):
        raise LinuxError(ENOTDIR)
    data = bytearray()
    entries = file.entries()
    while file.position < len(entries):
        name, inode = entries[file.position]
        text = name.encode("utf-8", "surrogateescape")
        entry = record(c.kernel.numbered(inode).number, file.position + 1, text, inode.kind >> 12)
        if len(data) + len(entry) > size:
            if not data:
                raise LinuxError(EINVAL)
            break
        file.position += 1
        data += entry
    return bytes(data)


def _dirent64(number: int, position: int, name: bytes, kind: int) -> bytes:
    length = -(-(19 + len(name) + 1) // 8) * 8
    return (struct.pack("<QqHB", number, position, length, kind) + name).ljust(length, b"\0")


@call("getdents64")
def getdents64(c: Caller, fd: Int, buffer: Address, size: Unsigned) -> int:
    """Read entries of a directory."""
    data = entries_of(c, fd, size, _dirent64)
    c.write(buffer, data)
    return len(data)


@call("getcwd")
def getcwd(c: Caller, buffer: Address, size: Size) -> int:
    """Report the working directory."""
    around = c.process.surroundings
    text = path_of(around.root, around.directory).encode("utf-8", "surrogateescape") + b"\0"
    if len(text) > size:
        raise LinuxError(ERANGE)
    c.write(buffer, text)
    return len(text)


def statfs_fields(inode: Inode) -> tuple[int, ...]:
    """Return the fields of struct statfs: they are the same in every layout of it."""
    magic = _PROC_MAGIC if isinstance(inode, (Generated, Listing)) else _TMPFS_MAGIC
    magic = _NSFS_MAGIC if isinstance(inode, NameSpace) else magic
    return magic, 4096, 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 0, 0, 255, 4096, 0


def _statfs(c: Caller, inode: Inode, buffer: int) -> int:
    c.write(buffer, _STATFS.pack(*statfs_fields(inode)))
    return 0


@call("statfs")
def statfs(c: Caller, path: Path, buffer: Address) -> int:
    """Describe the file system: it is one in memory."""
    return _statfs(c, c.inode(AT_FDCWD, path), buffer)


@call("fstatfs")
def fstatfs(c: Caller, fd: Int, buffer: Address) -> int:
    """Describe the file system."""
    return _statfs(c, c.file(fd).inode, buffer)
