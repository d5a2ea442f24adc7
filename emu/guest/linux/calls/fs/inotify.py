"""System calls that watch files and directories.

Source: Linux fs/notify/inotify/inotify_user.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import AT_FDCWD, Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EEXIST, EINVAL, ENOTDIR, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.inotify import IN_ALL, IN_ONESHOT, Inotify
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_NONBLOCK, O_RDONLY
from emu.guest.linux.process.cred import READ

_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK, _MASK_CREATE, _MASK_ADD = 1 << 24, 1 << 25, 1 << 26, 1 << 28, 1 << 29
_KNOWN: Final = IN_ALL | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK | _MASK_CREATE | _MASK_ADD | IN_ONESHOT


@call("inotify_init1")
def inotify_init1(c: Caller, flags: Int) -> int:
    """Make a queue of events."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    file = Inotify(Anonymous(), O_RDONLY | flags & O_NONBLOCK, c.kernel.watches)
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("inotify_init")
def inotify_init(c: Caller) -> int:
    """Make a queue of events."""
    return inotify_init1(c, 0)


def _queue(c: Caller, fd: int) -> Inotify:
    file = c.file(fd)
    if not isinstance(file, Inotify):
        raise LinuxError(EINVAL)
    return file


@call("inotify_add_watch")
def inotify_add_watch(c: Caller, fd: Int, path: Address, mask: Unsigned) -> int:
    """Watch a file or a directory."""
    if not mask & _KNOWN:
        raise LinuxError(EINVAL)
    c.file(fd)
    if mask & _MASK_ADD and mask & _MASK_CREATE:
        raise LinuxError(EINVAL)
    queue = _queue(c, fd)
    inode = c.inode(AT_FDCWD, c.path(path), follow=not mask & _DONT_FOLLOW)
    if mask & _ONLYDIR and not isinstance(inode, Directory):
        raise LinuxError(ENOTDIR)
    c.need(inode, READ)
    create = bool(mask & _MASK_CREATE)
    number = queue.watch(inode, mask & (IN_ALL | IN_ONESHOT), add=bool(mask & _MASK_ADD), create=create)
    if number is None:
        raise LinuxError(EEXIST)
    return number


@call("inotify_rm_watch")
def inotify_rm_watch(c: Caller, fd: Int, number: Int) -> int:
    """Take a watch back."""
    _queue(c, fd).forget(number)
    return 0
