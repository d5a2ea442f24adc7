"""System calls that change the surroundings of a process: root, working directory and umask.

Source: Linux fs/open.c, kernel/sys.c.
"""

from __future__ import annotations

from emu.guest.linux.calls.table import AT_FDCWD, Caller, Int, Path, Unsigned, call
from emu.guest.linux.errno import ENOTDIR, EPERM, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.namei import walk
from emu.guest.linux.process.cred import SEARCH, Capability


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
