"""System calls about what is written to disks.  There are none, so only arguments are checked.

Source: Linux fs/sync.c, mm/fadvise.c, mm/readahead.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Caller, Int, Long, Size, Unsigned, call
from emu.guest.linux.errno import EBADF, EINVAL, ESPIPE, LinuxError
from emu.guest.linux.fs.dir import Listing
from emu.guest.linux.fs.file_kinds import DirectoryOpen, GeneratedOpen, RegularOpen
from emu.guest.linux.fs.inode import Fifo
from emu.guest.linux.fs.open_file import OpenFile

_RANGE_FLAGS: Final = 7
# The last advice about a file (POSIX_FADV_NOREUSE).
_LAST_ADVICE: Final = 5


def _is_stored(file: OpenFile) -> bool:
    """Return whether a file system keeps the file."""
    return isinstance(file, RegularOpen) or (isinstance(file, DirectoryOpen) and not isinstance(file.inode, Listing))


@call("sync")
def sync(_c: Caller) -> int:
    """Write everything: there is nothing to write."""
    return 0


@call("syncfs")
def syncfs(c: Caller, fd: Int) -> int:
    """Write the file system of an open file."""
    c.opened(fd)
    return 0


@call("fsync", "fdatasync")
def fsync(c: Caller, fd: Int) -> int:
    """Write an open file; pipes, sockets, terminals and devices cannot be written like that."""
    if not _is_stored(c.opened(fd)):
        raise LinuxError(EINVAL)
    return 0


@call("sync_file_range")
def sync_file_range(c: Caller, fd: Int, offset: Long, size: Long, flags: Unsigned) -> int:
    """Write a part of an open file."""
    file = c.opened(fd)
    if flags & ~_RANGE_FLAGS or offset < 0 or offset + size < offset or offset + size >= 1 << 63:
        raise LinuxError(EINVAL)
    if not isinstance(file, (RegularOpen, GeneratedOpen, DirectoryOpen)):
        raise LinuxError(ESPIPE)
    return 0


@call("fadvise64")
def fadvise64(c: Caller, fd: Int, _offset: Long, size: Long, advice: Int) -> int:
    """Take advice about the use of a file."""
    file = c.opened(fd)
    if isinstance(file.inode, Fifo):
        raise LinuxError(ESPIPE)
    if size < 0 or not 0 <= advice <= _LAST_ADVICE:
        raise LinuxError(EINVAL)
    return 0


@call("readahead")
def readahead(c: Caller, fd: Int, _offset: Long, _size: Size) -> int:
    """Read a part of a file before it is needed."""
    file = c.opened(fd)
    if not file.can_read:
        raise LinuxError(EBADF)
    if not isinstance(file, (RegularOpen, GeneratedOpen)):
        raise LinuxError(EINVAL)
    return 0
