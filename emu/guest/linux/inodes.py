"""Files and directories of the guest.

A tree in memory, which is filled from a directory of the host on demand.

The host's files are read when the guest first uses them, and never written: a file that the guest
writes to gets a copy of its own, a directory it changes is changed in memory.  Symbolic links are
the guest's to follow, within this tree, so nothing outside the host directory can be reached by any
path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from emu.engine.pages import PAGE
from emu.guest.linux.content import Content, FileMemory
from emu.guest.linux.errno import EEXIST, EIO, ENOENT, ENOTEMPTY, ETXTBSY, LinuxError
from emu.guest.linux.locks import Locks

if TYPE_CHECKING:
    from emu.guest.linux.frames import Frames


class Inode:
    """The object that a name refers to.  Times are nanoseconds since 1970."""

    kind: int = 0
    """S_IF* of `stat`."""

    def __init__(self, permissions: int, time: int = 0) -> None:
        self.number = 0
        """st_ino; 0 until the first request for it (`Kernel.numbered`)."""
        self.permissions = permissions
        self.uid = self.gid = 0
        self.links = 1
        self.accessed = self.modified = self.changed = time
        self.device = 0
        """What a device file stands for: major << 8 | minor."""
        self._locks: Locks | None = None

    @property
    def locks(self) -> Locks:
        """The locks on it."""
        if self._locks is None:
            self._locks = Locks()
        return self._locks

    def release_locks(self, owner: object) -> None:
        """Take out the locks of an owner that has closed it."""
        if self._locks is not None:
            self._locks.release(owner)

    @property
    def mode(self) -> int:
        """Kind and permissions (st_mode)."""
        return self.kind | self.permissions

    @property
    def size(self) -> int:
        """Bytes (st_size)."""
        return 0

    @property
    def allocated(self) -> int:
        """Bytes that are kept (st_blocks * 512)."""
        return self.size


class RegularFile(Inode):
    """A file with content.  `host` is the file that it is read from on the first access."""

    kind = stat.S_IFREG

    def __init__(self, permissions: int, time: int = 0, *, host: Path | None = None, content: bytes = b"") -> None:
        super().__init__(permissions, time)
        self.host = host
        """Where the content is on the host, None once it is the guest's own."""
        self._content = None if host else Content(content)
        self._size_on_host = host.stat(follow_symlinks=False).st_size if host else 0
        self._memory: FileMemory | None = None
        self._pages: dict[int, int] = {}
        self._frames: Frames | None = None
        self.mapped_for_writing = False
        self.writers = 0
        """How often it is open for writing."""
        self.executions = 0
        """How many processes run it."""

    def need_no_execution(self) -> None:
        """Return if it may be written now.  Raises `LinuxError` ETXTBSY: a process runs it."""
        if self.executions:
            raise LinuxError(ETXTBSY)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size_on_host if self._content is None else self._content.size

    @property
    def allocated(self) -> int:
        """Bytes that are kept: without the holes."""
        return self._size_on_host if self._content is None else self._content.allocated

    @property
    def content(self) -> Content:
        """The file's bytes, without stores through shared mappings.  Raises `LinuxError` EIO."""
        if self._content is None:
            assert self.host is not None
            try:
                fd = os.open(self.host, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with open(fd, "rb") as file:  # noqa: PTH123  an open descriptor
                    self._content = Content(file.read())
            except OSError:
                raise LinuxError(EIO) from None
            self._content.memory = self._memory
        return self._content

    def count_in(self, memory: FileMemory) -> None:
        """Count what is written from now on."""
        self._memory = memory
        if self._content is not None:
            self._content.memory = memory

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        if self.mapped_for_writing:
            self._collect(offset, size)
        return self.content.read(offset, size)

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes; a gap before them is a hole.  Raises `LinuxError`: EFBIG, ENOSPC."""
        content = self.content
        if self.mapped_for_writing:
            self._collect(offset, len(data))
        self.host = None
        content.write(offset, data)
        self._show(offset, len(data))

    def truncate(self, size: int) -> None:
        """Make the file this long.  Raises `LinuxError` EFBIG."""
        content, old = self.content, self.size
        self.host = None
        if self.mapped_for_writing:
            self._collect(min(size, old) // PAGE * PAGE, PAGE)
        content.truncate(size)
        if self._pages:
            self._show(min(old, size), abs(size - old))

    def clear(self, start: int, end: int) -> None:
        """Make a hole, or zeros."""
        content = self.content
        if self.mapped_for_writing:
            self._collect(0, content.size)
        self.host = None
        content.clear(start, end)
        self._show(start, end - start)

    # The page cache: pages that are mapped, which reads and writes must agree with.

    def pages(self, frames: Frames) -> RegularFile:
        """Return this file as the backing of mappings in these frames."""
        self._frames = frames
        return self

    def page(self, index: int) -> int | None:
        """Return the frame of a page; None: the file ends before it."""
        assert self._frames is not None, "pages() comes first"
        if index * PAGE >= self.content.size:
            return None
        frame = self._pages.get(index)
        if frame is None:
            frame = self._pages[index] = self._frames.take(self.content.read(index * PAGE, PAGE))
        return frame

    def _mapped(self, offset: int, size: int) -> list[int]:
        """Return the numbers of the mapped pages that hold some of these bytes."""
        first, last = offset // PAGE, (offset + size) // PAGE
        if last - first > len(self._pages):
            return sorted(index for index in self._pages if first <= index <= last)
        return [index for index in range(first, last + 1) if index in self._pages]

    def _show(self, offset: int, size: int) -> None:
        """Put what was written into the pages that are mapped."""
        for index in self._mapped(offset, size):
            assert self._frames is not None
            page = self.content.read(index * PAGE, PAGE)
            self._frames.write(self._pages[index], 0, page.ljust(PAGE, b"\0"))

    def _collect(self, offset: int, size: int) -> None:
        """Take over what was stored in these bytes through shared mappings."""
        content = self.content
        for index in self._mapped(offset, size):
            assert self._frames is not None
            start = index * PAGE
            end = min(start + PAGE, content.size)
            stored = self._frames.read(self._pages[index])[: max(0, end - start)]
            if stored and stored != content.read(start, PAGE):
                content.write(start, stored)


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


class Symlink(Inode):
    """A symbolic link."""

    kind = stat.S_IFLNK

    def __init__(self, target: str, time: int = 0) -> None:
        super().__init__(0o777, time)
        self.target = target

    @property
    def size(self) -> int:
        """Length of the target."""
        return len(self.target.encode("utf-8", "surrogateescape"))

    def follow(self) -> Inode | None:
        """Return what it leads to where the text does not say: the links of /proc.

        None: follow the text.
        """
        return None


class MagicLink(Symlink):
    """A link of /proc, which leads to an inode whatever has become of its path."""

    def __init__(self, text: Callable[[], str], inode: Callable[[], Inode | None]) -> None:
        super().__init__("")
        self._text = text
        self._inode = inode

    @property
    def target(self) -> str:
        """What readlink says."""
        return self._text()

    @target.setter
    def target(self, _value: str) -> None:
        """Leave it: the text follows the process."""

    @property
    def size(self) -> int:
        """The size that /proc reports."""
        return 64

    def follow(self) -> Inode | None:
        """Return the inode."""
        return self._inode()


class Device(Inode):
    """A character device; `driver` names what opens it."""

    kind = stat.S_IFCHR

    def __init__(self, driver: str, device: int, permissions: int = 0o666, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.driver = driver
        self.device = device


class Fifo(Inode):
    """A named pipe, or the two ends of one that has no name."""

    kind = stat.S_IFIFO

    def __init__(self, permissions: int, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.pipe: object | None = None
        """The pipe that is open, or the user's stream in its place; None: it is not open."""
        self.anonymous = False
        """Whether it has no name: then it is opened again through /proc, and no opener waits."""


class Socket(Inode):
    """A socket, or the name of one in the file system."""

    kind = stat.S_IFSOCK

    def __init__(self, permissions: int, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.socket: object | None = None
        """The socket that is bound to this name; None: it was closed."""


class Anonymous(Inode):
    """The object of a file without a name and a type: an epoll, a timer, an event counter."""

    def __init__(self) -> None:
        super().__init__(0o600)


class Generated(Inode):
    """A file of /proc, whose content is made when it is opened."""

    kind = stat.S_IFREG

    def __init__(self, content: Callable[[], bytes], permissions: int = 0o444) -> None:
        super().__init__(permissions)
        self.content = content


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


def host_file(path: Path) -> RegularFile:
    """Return a file of the host as one of the guest's.  Raises OSError."""
    info = path.stat()
    file = RegularFile(stat.S_IMODE(info.st_mode), info.st_mtime_ns, host=path.resolve())
    file.links = info.st_nlink
    return file
