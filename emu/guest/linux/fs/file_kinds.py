"""Open files of the kinds that have content or entries: regular files, /proc, directories."""

# ruff: noqa: ARG002  (what a kind of file cannot do, it refuses, whatever it is told)

from __future__ import annotations

from collections.abc import Callable

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EBADF, EINVAL, EISDIR, ENOTTY, ENXIO, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Generated, Inode
from emu.guest.linux.fs.open_file import FIONREAD, O_APPEND, OpenFile, UserMemory
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.fs.regular import RegularFile, Seal

_SEEK_SET, _SEEK_CUR, _SEEK_END, _SEEK_DATA, _SEEK_HOLE = range(5)


class RegularOpen(OpenFile):
    """A file with content."""

    inode: RegularFile

    def __init__(self, inode: RegularFile, flags: int, path: str, wall: Callable[[], int], memory: FileMemory) -> None:
        super().__init__(inode, flags, path)
        self._wall = wall
        if self.can_write:
            inode.count_in(memory)

    def opened(self) -> None:
        """Count who writes."""
        self.inode.writers += self.can_write

    def closed(self) -> None:
        """Count who writes."""
        self.inode.writers -= self.can_write

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read."""
        data = self.inode.read(self.position if offset is None else offset, size)
        if offset is None:
            self.position += len(data)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write; at the end if the file was opened for appending."""
        here = self.position if offset is None else offset
        offset_now = self.inode.size if self.flags & O_APPEND else here
        if Seal.GROW in self.inode.seals:
            data = _whole_pages_in(data, offset_now, self.inode.size) or data
        if data:
            self.inode.write(offset_now, data)
            self.inode.modified = self.inode.changed = self._wall()
        if offset is None:
            self.position = offset_now + len(data)
        return len(data)

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Return the number of bytes that can be read."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        memory.write(argument, max(0, self.inode.size - self.position).to_bytes(4, "little"))
        return 0

    def seek(self, offset: int, whence: int) -> int:
        """Move."""
        size = self.inode.size
        bases = {_SEEK_SET: 0, _SEEK_CUR: self.position, _SEEK_END: size, _SEEK_DATA: 0, _SEEK_HOLE: 0}
        if whence not in bases or bases[whence] + offset < 0:
            raise LinuxError(EINVAL)
        if whence in {_SEEK_DATA, _SEEK_HOLE}:
            content = self.inode.content
            found = content.hole_from(offset) if whence == _SEEK_HOLE else content.data_from(offset)
            if offset >= size or found is None:
                raise LinuxError(ENXIO)
            self.position = found
        else:
            self.position = bases[whence] + offset
        return self.position


def _whole_pages_in(data: bytes, offset: int, size: int) -> bytes:
    """Return what of some data, page by page, ends before the end of a file that may not grow."""
    return data if offset + len(data) <= size else data[: max(0, size // PAGE * PAGE - offset)]


class GeneratedOpen(OpenFile):
    """A file of /proc, whose content is made when its beginning is read (fs/seq_file.c)."""

    def __init__(self, inode: Generated, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self._make = inode.content
        self._content: bytes | None = None

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read."""
        start = self.position if offset is None else offset
        if self._content is None or not start:
            self._content = self._make()
        data = self._content[start : start + size]
        if offset is None:
            self.position += len(data)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Take no notice: nothing here can be set."""
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """Move; such a file has no end to move from."""
        base = {_SEEK_SET: 0, _SEEK_CUR: self.position}.get(whence)
        if base is None or base + offset < 0:
            raise LinuxError(EINVAL)
        self.position = base + offset
        return self.position


class DirectoryOpen(OpenFile):
    """A directory that is being read."""

    inode: Directory

    def __init__(self, inode: Directory, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self.listing: list[tuple[str, Inode]] | None = None
        """The content when reading began."""

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Refuse."""
        raise LinuxError(EISDIR)

    def entries(self) -> list[tuple[str, Inode]]:
        """Return what is in it, `.` and `..` first."""
        if self.listing is None:
            inode = self.inode
            self.listing = [(".", inode), ("..", inode.parent), *inode.entries().items()]
        return self.listing

    def seek(self, offset: int, whence: int) -> int:
        """Move to an entry; to the start: look anew."""
        if whence != _SEEK_SET:
            if whence == _SEEK_CUR and not offset:
                return self.position
            raise LinuxError(EINVAL)
        self.position = offset
        if not offset:
            self.listing = None
        return offset


class PathOnly(OpenFile):
    """A file opened with O_PATH: a path without operations on the file."""

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Refuse."""
        raise LinuxError(EBADF)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Refuse."""
        raise LinuxError(EBADF)
