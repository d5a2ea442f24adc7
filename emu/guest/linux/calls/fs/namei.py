"""System calls that make, remove and rename entries of directories.  Source: Linux fs/namei.c."""

from __future__ import annotations

import stat
from typing import Final

from emu.guest.linux.calls.table import AT_FDCWD, Caller, Int, Path, Unsigned, call
from emu.guest.linux.errno import (
    EBUSY,
    EEXIST,
    EINVAL,
    EISDIR,
    ENOENT,
    ENOTDIR,
    EPERM,
    LinuxError,
)
from emu.guest.linux.fs import devices
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Device, Fifo, Inode, Socket, Symlink
from emu.guest.linux.fs.inotify import IN_CREATE, IN_MOVE_SELF, IN_MOVED_FROM, IN_MOVED_TO
from emu.guest.linux.fs.namei import Dentry
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.process.cred import SEARCH, WRITE

_AT_REMOVEDIR: Final = 0x200
_AT_SYMLINK_FOLLOW: Final = 0x400
_AT_EMPTY_PATH: Final = 0x1000
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2


def _new_dentry(c: Caller, directory: int, path: str) -> Dentry:
    """Return where something new goes.  Raises `LinuxError` EEXIST."""
    dentry = c.dentry(directory, path, follow=False)
    if dentry.inode is not None:
        raise LinuxError(EEXIST)
    return dentry


def touch(c: Caller, *inodes: Inode) -> None:
    """Note that the content of inodes has changed now."""
    for inode in inodes:
        inode.modified = inode.changed = c.kernel.wall()


def _is_procfs(directory: Directory) -> bool:
    return type(directory) is not Directory


def _add(c: Caller, dentry: Dentry, inode: Inode, *, new: bool = True) -> int:
    if _is_procfs(dentry.directory):
        raise LinuxError(EPERM)
    c.need(dentry.directory, WRITE | SEARCH)
    if new:
        c.process.credentials.give(inode, dentry.directory)
    dentry.directory.add(dentry.name, inode)
    touch(c, dentry.directory)
    c.kernel.watches.tell_name(dentry.directory, IN_CREATE, dentry.name, inode)
    return 0


@call("mkdirat")
def mkdirat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Make a directory."""
    dentry = _new_dentry(c, directory, path)
    return _add(c, dentry, Directory(mode & 0o1777 & ~c.process.surroundings.umask, c.kernel.wall()))


@call("mkdir")
def mkdir(c: Caller, path: Path, mode: Unsigned) -> int:
    """Make a directory."""
    return mkdirat(c, AT_FDCWD, path, mode)


@call("mknodat")
def mknodat(c: Caller, directory: Int, path: Path, mode: Unsigned, device: Unsigned) -> int:
    """Make a file, a named pipe, a socket or a device."""
    dentry = _new_dentry(c, directory, path)
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
    return _add(c, dentry, inode)


@call("mknod")
def mknod(c: Caller, path: Path, mode: Unsigned, device: Unsigned) -> int:
    """Make a file."""
    return mknodat(c, AT_FDCWD, path, mode, device)


@call("symlinkat")
def symlinkat(c: Caller, target: Path, directory: Int, path: Path) -> int:
    """Make a symbolic link."""
    if not target:
        raise LinuxError(ENOENT)
    dentry = _new_dentry(c, directory, path)
    if dentry.must_be_directory:
        raise LinuxError(ENOENT)
    return _add(c, dentry, Symlink(target, c.kernel.wall()))


@call("symlink")
def symlink(c: Caller, target: Path, path: Path) -> int:
    """Make a symbolic link."""
    return symlinkat(c, target, AT_FDCWD, path)


@call("linkat")
def linkat(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path, flags: Unsigned) -> int:
    """Give a file another name."""
    if flags & ~(_AT_SYMLINK_FOLLOW | _AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    if not old and flags & _AT_EMPTY_PATH:
        inode = c.file(old_at).inode
    else:
        inode = c.inode(old_at, old, follow=bool(flags & _AT_SYMLINK_FOLLOW))
    if isinstance(inode, Directory):
        raise LinuxError(EPERM)
    result = _add(c, _new_dentry(c, new_at, new), inode, new=False)
    inode.links += 1
    inode.changed = c.kernel.wall()
    return result


@call("link")
def link(c: Caller, old: Path, new: Path) -> int:
    """Give a file another name."""
    return linkat(c, AT_FDCWD, old, AT_FDCWD, new, 0)


def _need_to_remove(c: Caller, directory: Directory, inode: Inode) -> None:
    c.need(directory, WRITE | SEARCH)
    if not c.process.credentials.may_remove(directory, inode):
        raise LinuxError(EPERM)


@call("unlinkat")
def unlinkat(c: Caller, directory: Int, path: Path, flags: Unsigned) -> int:
    """Take a name away."""
    if flags & ~_AT_REMOVEDIR:
        raise LinuxError(EINVAL)
    dentry = c.dentry(directory, path, follow=False)
    inode = dentry.found()
    if flags & _AT_REMOVEDIR:
        if not isinstance(inode, Directory):
            raise LinuxError(ENOTDIR)
        if not dentry.name:
            raise LinuxError(EINVAL if path.endswith(".") else EBUSY)
        if path.rstrip("/").endswith("/.") or path == ".":
            raise LinuxError(EINVAL)
    elif isinstance(inode, Directory):
        raise LinuxError(EISDIR)
    if _is_procfs(dentry.directory):
        raise LinuxError(EPERM)
    _need_to_remove(c, dentry.directory, inode)
    dentry.directory.remove(dentry.name)
    touch(c, dentry.directory)
    inode.changed = c.kernel.wall()
    c.kernel.watches.removed(dentry.directory, dentry.name, inode)
    return 0


@call("unlink")
def unlink(c: Caller, path: Path) -> int:
    """Take a name away."""
    return unlinkat(c, AT_FDCWD, path, 0)


@call("rmdir")
def rmdir(c: Caller, path: Path) -> int:
    """Take a directory away."""
    return unlinkat(c, AT_FDCWD, path, _AT_REMOVEDIR)


def _holds(inode: Inode, directory: Directory) -> bool:
    """Return whether a directory is an inode or lies below it."""
    while directory is not directory.parent:
        if directory is inode:
            return True
        directory = directory.parent
    return False


@call("renameat2")
def renameat2(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path, flags: Unsigned) -> int:
    """Give something another name."""
    both = _RENAME_NOREPLACE | _RENAME_EXCHANGE
    if flags & ~both or flags & both == both:
        raise LinuxError(EINVAL)
    source = c.dentry(old_at, old, follow=False)
    target = c.dentry(new_at, new, follow=False)
    inode = source.found()
    if not source.name or not target.name or _is_procfs(source.directory) or _is_procfs(target.directory):
        raise LinuxError(EBUSY)
    _need_to_remove(c, source.directory, inode)
    c.need(target.directory, WRITE | SEARCH)
    if target.inode is not None:
        _need_to_remove(c, target.directory, target.inode)
    if _holds(inode, target.directory):
        raise LinuxError(EINVAL)
    if flags & _RENAME_EXCHANGE and _holds(target.found(), source.directory):
        raise LinuxError(EINVAL)
    if flags & _RENAME_NOREPLACE and target.inode is not None:
        raise LinuxError(EEXIST)
    if target.inode is inode:
        return 0
    if flags & _RENAME_EXCHANGE:
        other = target.found()
        entries = source.directory.entries(), target.directory.entries()
        entries[0][source.name], entries[1][target.name] = other, inode
        for moved, directory in ((other, source.directory), (inode, target.directory)):
            if isinstance(moved, Directory):
                moved.parent = directory
        return 0
    if target.inode is not None:
        if isinstance(target.inode, Directory) is not isinstance(inode, Directory):
            raise LinuxError(EISDIR if isinstance(target.inode, Directory) else ENOTDIR)
        target.directory.remove(target.name)
    replaced = target.inode
    del source.directory.entries()[source.name]
    target.directory.add(target.name, inode)
    touch(c, source.directory, target.directory)
    inode.changed = c.kernel.wall()
    watches = c.kernel.watches
    cookie = watches.cookie()
    watches.tell_name(source.directory, IN_MOVED_FROM, source.name, inode, cookie)
    watches.tell_name(target.directory, IN_MOVED_TO, target.name, inode, cookie)
    watches.tell_self(inode, IN_MOVE_SELF)
    if replaced is not None:
        watches.lost(replaced)
    return 0


@call("renameat")
def renameat(c: Caller, old_at: Int, old: Path, new_at: Int, new: Path) -> int:
    """Give something another name."""
    return renameat2(c, old_at, old, new_at, new, 0)


@call("rename")
def rename(c: Caller, old: Path, new: Path) -> int:
    """Give something another name."""
    return renameat2(c, AT_FDCWD, old, AT_FDCWD, new, 0)
