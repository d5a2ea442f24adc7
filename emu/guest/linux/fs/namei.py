"""From a path to an inode: the walk that keeps a process inside its root."""

from __future__ import annotations

from typing import Final, NamedTuple

from emu.guest.linux.errno import EACCES, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode, Symlink
from emu.guest.linux.process.cred import SEARCH, Credentials

_LINKS_MAX: Final = 40
_PATH_MAX: Final = 4096
_NAME_MAX: Final = 255
# How openat2 lets a path be followed (RESOLVE_* of include/uapi/linux/openat2.h).
NO_MAGIC_LINKS, NO_LINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10


class Dentry(NamedTuple):
    """A directory entry at the end of a path: a directory, a name in it, and its inode.

    The inode is None where the directory does not have the name (a negative entry).
    """

    directory: Directory
    name: str
    """The last name; "" when the path ends at a directory by way of `.`, `..` or the root."""
    inode: Inode | None
    must_be_directory: bool
    """Whether the path ends with a slash."""

    def found(self) -> Inode:
        """Return the inode of this entry.  Raises `LinuxError`: ENOENT, ENOTDIR."""
        if self.inode is None:
            raise LinuxError(ENOENT)
        if self.must_be_directory and not isinstance(self.inode, Directory):
            raise LinuxError(ENOTDIR)
        return self.inode


def _check_link(inode: Symlink, target: Inode | None, way: int) -> None:
    """Return if a link may be followed.  Raises `LinuxError`: ELOOP, EXDEV."""
    if way & NO_LINKS or (target is not None and way & NO_MAGIC_LINKS):
        raise LinuxError(ELOOP)
    if target is not None and way & (BENEATH | IN_ROOT):
        raise LinuxError(EXDEV)
    if target is None and way & BENEATH and inode.target.startswith("/"):
        raise LinuxError(EXDEV)


def walk(
    root: Directory,
    start: Directory,
    path: str,
    *,
    follow: bool = True,
    credentials: Credentials | None = None,
    way: int = 0,
) -> Dentry:
    """Follow a path from `start`, or from `root` if it is absolute; `..` does not leave `root`.

    `follow` says whether a symbolic link at the very end is followed, `credentials` who asks; None:
    root.  `way` has the flags of openat2.  Raises `LinuxError`: ENOENT (also for a missing
    directory on the way), ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, EXDEV.
    """
    if not path:
        raise LinuxError(ENOENT)
    if len(path) >= _PATH_MAX:
        raise LinuxError(ENAMETOOLONG)
    if way & BENEATH and path.startswith("/"):
        raise LinuxError(EXDEV)
    if way & (BENEATH | IN_ROOT):
        root = start
    links = 0
    directory = root if path.startswith("/") else start
    names = _names(path)
    slash = path.endswith(("/", "/."))
    name, inode = "", None
    while names:
        name = names.pop()
        if len(name) > _NAME_MAX:
            raise LinuxError(ENAMETOOLONG)
        if credentials is not None and not credentials.may(directory, SEARCH):
            raise LinuxError(EACCES)
        if name == "..":
            if directory is not root:
                directory = directory.parent
            elif way & BENEATH:
                raise LinuxError(EXDEV)
            name, inode = "", None
            continue
        inode = directory.get(name)
        last = not names
        if isinstance(inode, Symlink) and (not last or follow or slash):
            links += 1
            if links > _LINKS_MAX:
                raise LinuxError(ELOOP)
            target = inode.follow()
            _check_link(inode, target, way)
            if target is None:
                text = inode.target
                if not text:
                    raise LinuxError(ENOENT)
                names += _names(text)
                if text.startswith("/"):
                    directory = root
                if not names:
                    name, inode = "", None
                continue
            inode = target
        if last:
            break
        if inode is None:
            raise LinuxError(ENOENT)
        if not isinstance(inode, Directory):
            raise LinuxError(ENOTDIR)
        directory, name, inode = inode, "", None
    if not name:
        return Dentry(directory, "", directory, must_be_directory=False)
    return Dentry(directory, name, inode, must_be_directory=slash)


def _names(path: str) -> list[str]:
    """Return the names of a path, the last first; `.` and empty ones say nothing."""
    return [name for name in reversed(path.split("/")) if name not in {"", "."}]


def path_of(root: Directory, inode: Inode, name: str = "") -> str:
    """Return the path of a directory from the root, or of a name in it."""
    parts = [name] if name else []
    while isinstance(inode, Directory) and inode is not root and inode.parent is not inode:
        parent = inode.parent
        parts.append(next((found for found, entry in parent.entries().items() if entry is inode), "?"))
        inode = parent
    return "/" + "/".join(reversed(parts))
