"""Directories: a tree in memory, which is filled from a directory of the host on demand.

A directory that the guest changes is changed in memory only.  Symbolic links are the guest's to
follow, within this tree, so nothing outside the host directory can be reached by any path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EEXIST, ENOENT, ENOTEMPTY, LinuxError
from emu.guest.linux.fs.inode import Inode, Symlink
from emu.guest.linux.fs.regular import RegularFile


class Directory(Inode):
    """A directory.  `host` is the directory that it is filled from on the first access."""

    kind = stat.S_IFDIR

    def __init__(
        self, permissions: int = 0o755, time: int = 0, *, parent: Directory | None = None, host: Path | None = None
    ) -> None:
        super().__init__(permissions, time)
        self.parent = parent or self
        self.removed = False
        """Whether it has no name any more."""
        self._host = host
        self._entries: dict[str, Inode] = {}

    @property
    def links(self) -> int:
        """Its name, `.`, and the `..` of each directory in it."""
        return 0 if self.removed else 2 + sum(isinstance(inode, Directory) for inode in self.entries().values())

    @links.setter
    def links(self, _value: int) -> None:
        """Leave it: the number follows from what is inside."""

    @property
    def size(self) -> int:
        """Bytes, as most file systems have it for a small directory."""
        return PAGE

    def entries(self) -> dict[str, Inode]:
        """Return what is in it, by name."""
        if self._host is not None:
            host, self._host = self._host, None
            for name, inode in _import(host, self):
                self._entries.setdefault(name, inode)
        return self._entries

    def get(self, name: str) -> Inode | None:
        """Return an entry, None if there is none of that name."""
        return self.entries().get(name)

    def add(self, name: str, inode: Inode) -> None:
        """Add an entry.  Raises `LinuxError` EEXIST."""
        if name in self.entries():
            raise LinuxError(EEXIST)
        self._entries[name] = inode
        if isinstance(inode, Directory):
            inode.parent = self

    def remove(self, name: str) -> Inode:
        """Take an entry out.  Raises `LinuxError`: ENOENT, ENOTEMPTY."""
        inode = self.entries().get(name)
        if inode is None:
            raise LinuxError(ENOENT)
        if isinstance(inode, Directory):
            if inode.entries():
                raise LinuxError(ENOTEMPTY)
            inode.removed = True
        inode.links -= 1
        del self._entries[name]
        return inode

    def make(self, path: str, permissions: int = 0o755) -> Directory:
        """Return the directory at a path below this one; make what is missing."""
        directory = self
        for name in path.strip("/").split("/"):
            if not name:
                continue
            found = directory.get(name)
            if not isinstance(found, Directory):
                if found is not None:
                    directory.remove(name)
                found = Directory(permissions, self.modified)
                directory.add(name, found)
            directory = found
        return directory


class Listing(Directory):
    """A directory of /proc: `names` gives the names of its entries, `find` one entry."""

    def __init__(self, names: Callable[[], list[str]], find: Callable[[str], Inode | None]) -> None:
        super().__init__(0o555)
        self._names = names
        self._find = find

    @property
    def links(self) -> int:
        """The number for a directory whose entries are not counted."""
        return 2

    @links.setter
    def links(self, _value: int) -> None:
        """Leave it."""

    def entries(self) -> dict[str, Inode]:
        """Return what is in it now."""
        return {name: inode for name in self._names() if (inode := self.get(name)) is not None}

    def get(self, name: str) -> Inode | None:
        """Return an entry."""
        inode = self._find(name)
        if isinstance(inode, Directory) and inode.parent is inode:
            inode.parent = self
        return inode


def _import(host: Path, parent: Directory) -> Iterator[tuple[str, Inode]]:
    """Yield the entries of a directory of the host, by name."""
    try:
        with os.scandir(host) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        inode = _imported(Path(entry.path), info, parent)
        if inode is not None:
            yield entry.name, inode


def _imported(path: Path, info: os.stat_result, parent: Directory | None) -> Inode | None:
    """Return a file of the host as one of the guest's; None: of a kind that stays outside."""
    permissions = stat.S_IMODE(info.st_mode)
    inode: Inode
    if stat.S_ISDIR(info.st_mode):
        inode = Directory(permissions, parent=parent, host=path)
    elif stat.S_ISREG(info.st_mode):
        inode = RegularFile(permissions, host=path)
    elif stat.S_ISLNK(info.st_mode):
        inode = Symlink(str(path.readlink()))
    else:
        return None
    inode.accessed = inode.changed = inode.modified = info.st_mtime_ns
    return inode
