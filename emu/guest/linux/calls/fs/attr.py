"""System calls that change the attributes of files: length, permissions, owner, times.

Source: Linux fs/open.c, fs/attr.c (inode_newsize_ok), fs/utimes.c, mm/truncate.c, mm/memory.c
(unmap_mapping_range).
"""

from __future__ import annotations

import struct
from typing import Final

from emu.engine.memory.pages import round_up
from emu.guest.linux.calls.fs.namei import touch
from emu.guest.linux.calls.fs.stat import inode_at
from emu.guest.linux.calls.table import AT_FDCWD, Address, Caller, Int, Long, Path, Unsigned, call
from emu.guest.linux.errno import EFBIG, EINVAL, EISDIR, EOPNOTSUPP, EPERM, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode, Symlink
from emu.guest.linux.fs.inotify import IN_ATTRIB, IN_MODIFY
from emu.guest.linux.fs.regular import RegularFile, Seal, need_unsealed
from emu.guest.linux.process.cred import WRITE, Capability
from emu.guest.linux.process.rlimit import FSIZE
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo

_UTIME_NOW, _UTIME_OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_SET_UID, _SET_GID = 0o4000, 0o2000
_EXECUTABLE: Final = 0o111
_SECOND: Final = 1_000_000_000
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000


def _check_flags(flags: int) -> None:
    """Check the AT_ flags of a call.  Raises `LinuxError` EINVAL."""
    if flags & ~(_AT_SYMLINK_NOFOLLOW | _AT_EMPTY_PATH):
        raise LinuxError(EINVAL)


def _need_to_own(c: Caller, inode: Inode) -> None:
    if not c.process.credentials.owns(inode):
        raise LinuxError(EPERM)


def too_large(c: Caller) -> LinuxError:
    """Return the error of a file that would be larger than its limit.

    The thread gets SIGXFSZ with it.
    """
    c.kernel.sending.send_thread(c.thread, SignalInfo(Signal.SIGXFSZ, SI_USER, pid=c.process.pid))
    return LinuxError(EFBIG)


def need_limit(c: Caller, file: RegularFile, size: int) -> None:
    """Check that a file may become this long.  Raises `LinuxError` EFBIG, with SIGXFSZ."""
    if size > max(c.process.limits[FSIZE].soft, file.size):
        raise too_large(c)


def set_length(c: Caller, file: RegularFile, size: int) -> None:
    """Make a file this long, and note the change.

    Processes lose the pages of its mappings behind the end, also their own copies: an access raises
    SIGBUS.  Raises `LinuxError`: EFBIG, EPERM.
    """
    need_limit(c, file, size)
    shorter = size < file.size
    file.truncate(size)
    touch(c, file)
    if not shorter:
        return
    end = round_up(size)
    for space, area in c.kernel.tasks.mappings(file):
        space.drop(max(area.start, area.start + end - area.offset), area.end)


@call("truncate")
def truncate(c: Caller, path: Path, size: Long) -> int:
    """Make a file this long."""
    inode = c.inode(AT_FDCWD, path)
    if isinstance(inode, Directory):
        raise LinuxError(EISDIR)
    if not isinstance(inode, RegularFile) or size < 0:
        raise LinuxError(EINVAL)
    c.need(inode, WRITE)
    inode.need_no_execution()
    inode.count_in(c.kernel.file_memory)
    set_length(c, inode, size)
    c.kernel.watches.tell(inode, IN_MODIFY)
    return 0


def _chmod(c: Caller, inode: Inode, mode: int) -> int:
    if isinstance(inode, Symlink):
        raise LinuxError(EOPNOTSUPP)
    _need_to_own(c, inode)
    credentials = c.process.credentials
    if not credentials.can(Capability.FSETID) and not credentials.in_group(inode.gid):
        mode &= ~_SET_GID
    if isinstance(inode, RegularFile) and (mode ^ inode.permissions) & _EXECUTABLE:
        need_unsealed(inode.seals, Seal.EXEC)
    inode.permissions = mode & 0o7777
    inode.changed = c.kernel.wall()
    c.kernel.watches.tell(inode, IN_ATTRIB)
    return 0


@call("fchmodat")
def fchmodat(c: Caller, directory: Int, path: Path, mode: Unsigned) -> int:
    """Change permissions."""
    return _chmod(c, c.inode(directory, path), mode)


@call("fchmodat2")
def fchmodat2(c: Caller, directory: Int, path: Path, mode: Unsigned, flags: Unsigned) -> int:
    """Change permissions."""
    _check_flags(flags)
    return _chmod(c, inode_at(c, directory, path, flags), mode)


@call("chmod")
def chmod(c: Caller, path: Path, mode: Unsigned) -> int:
    """Change permissions."""
    return _chmod(c, c.inode(AT_FDCWD, path), mode)


@call("fchmod")
def fchmod(c: Caller, fd: Int, mode: Unsigned) -> int:
    """Change permissions of an open file."""
    return _chmod(c, c.opened(fd).inode, mode)


def _chown(c: Caller, inode: Inode, uid: int, gid: int) -> int:
    credentials = c.process.credentials
    if not credentials.can(Capability.CHOWN) and (
        credentials.user.files != inode.uid
        or uid not in {-1, inode.uid}
        or not (gid in {-1, inode.gid} or credentials.in_group(gid))
    ):
        raise LinuxError(EPERM)
    inode.uid = inode.uid if uid == -1 else uid & 0xFFFF_FFFF
    inode.gid = inode.gid if gid == -1 else gid & 0xFFFF_FFFF
    if not isinstance(inode, Directory):
        inode.permissions &= ~_SET_UID
        if inode.permissions & 0o10:
            inode.permissions &= ~_SET_GID
    inode.changed = c.kernel.wall()
    c.kernel.watches.tell(inode, IN_ATTRIB)
    return 0


@call("fchownat")
def fchownat(c: Caller, directory: Int, path: Path, uid: Int, gid: Int, flags: Unsigned) -> int:
    """Change the owner."""
    _check_flags(flags)
    return _chown(c, inode_at(c, directory, path, flags), uid, gid)


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
    return _chown(c, c.opened(fd).inode, uid, gid)


def _set_times(c: Caller, inode: Inode, accessed: int | None, modified: int | None, *, to_now: bool = False) -> int:
    """Set times; who may write a file may set them to the present one."""
    if to_now:
        if not c.process.credentials.owns(inode):
            c.need(inode, WRITE)
    else:
        _need_to_own(c, inode)
    if accessed is not None:
        inode.accessed = accessed
    if modified is not None:
        inode.modified = modified
    inode.changed = c.kernel.wall()
    c.kernel.watches.tell(inode, IN_ATTRIB)
    return 0


@call("utimensat")
def utimensat(c: Caller, directory: Int, path: Address, at: Address, flags: Unsigned) -> int:
    """Set the times of a file."""
    form = struct.Struct(f"<4{c.time_form}")
    fields = form.unpack(c.read(at, form.size)) if at else (0, 0, 0, 0)
    if any(rest not in {_UTIME_NOW, _UTIME_OMIT} and not 0 <= rest < _SECOND for rest in fields[1::2]):
        raise LinuxError(EINVAL)
    if fields[1::2] == (_UTIME_OMIT, _UTIME_OMIT):
        return 0
    by_path = path or directory == AT_FDCWD
    if flags and not by_path:
        raise LinuxError(EINVAL)
    _check_flags(flags)
    inode = inode_at(c, directory, c.path(path), flags) if by_path else c.opened(directory).inode
    wall = c.kernel.wall()
    if not at:
        return _set_times(c, inode, wall, wall, to_now=True)
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
        return _set_times(c, inode, wall, wall, to_now=True)
    fields = c.longs(at, 4)
    first, second = (seconds * _SECOND + rest * 1000 for seconds, rest in (fields[:2], fields[2:]))
    return _set_times(c, inode, first, second)


@call("utime")
def utime(c: Caller, path: Path, at: Address) -> int:
    """Set the times of a file."""
    inode, wall = c.inode(AT_FDCWD, path), c.kernel.wall()
    if not at:
        return _set_times(c, inode, wall, wall, to_now=True)
    accessed, modified = c.longs(at, 2)
    return _set_times(c, inode, accessed * _SECOND, modified * _SECOND)
