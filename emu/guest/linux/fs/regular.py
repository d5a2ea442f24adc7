"""Files with content, and their seals.

A file of the host is read when the guest first uses it, and never written: a file that the guest
writes to gets a copy of its own.
"""

from __future__ import annotations

import os
import stat
from enum import IntFlag
from pathlib import Path
from typing import TYPE_CHECKING

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EIO, EPERM, ETXTBSY, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.page_cache import Content, FileMemory

if TYPE_CHECKING:
    from emu.guest.linux.mm.page_frames import Frames


class Seal(IntFlag):
    """The changes that a seal forbids (F_SEAL_*).

    Source: Linux mm/memfd.c, mm/shmem.c; fcntl(2), "File Sealing".
    """

    NONE = 0
    SEAL = 1
    """More seals."""
    SHRINK = 2
    GROW = 4
    WRITE = 8
    FUTURE_WRITE = 0x10
    """Writing, except through mappings that exist already."""
    EXEC = 0x20
    """A change of whether the file may be executed."""


# With EXEC, these are added to a file that may be executed.
OF_PROGRAMS = Seal.SHRINK | Seal.GROW | Seal.WRITE | Seal.FUTURE_WRITE
NO_WRITING = Seal.WRITE | Seal.FUTURE_WRITE


def need_unsealed(seals: Seal, forbidding: Seal) -> None:
    """Check that a file has none of these seals.  Raises `LinuxError` EPERM."""
    if seals & forbidding:
        raise LinuxError(EPERM)


def need_size(seals: Seal, old: int, new: int) -> None:
    """Check that a file may get another size.  Raises `LinuxError` EPERM."""
    need_unsealed(seals, Seal.SHRINK if new < old else Seal.GROW if new > old else Seal.NONE)


class RegularFile(Inode):
    """A file with content.  `host` is the file that it is read from on the first access."""

    kind = stat.S_IFREG

    def __init__(self, permissions: int, time: int = 0, *, host: Path | None = None, content: bytes = b"") -> None:
        super().__init__(permissions, time)
        self.host = host
        """The file of the host that has the content; None once the content is the guest's own."""
        self._content = None if host else Content(content)
        self._size_on_host = host.stat(follow_symlinks=False).st_size if host else 0
        self._memory: FileMemory | None = None
        self._pages: dict[int, int] = {}
        self._frames: Frames | None = None
        self.mapped_for_writing = False
        self.writers = 0
        """The number of open files that may write to it."""
        self.executions = 0
        """The number of processes that run it."""
        self.seals = Seal.SEAL
        """What is forbidden; only a file of memfd_create may get seals."""

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
        """Write bytes; a gap before them is a hole.  Raises `LinuxError`: EFBIG, ENOSPC, EPERM."""
        need_unsealed(self.seals, NO_WRITING)
        need_size(self.seals, self.size, max(self.size, offset + len(data)))
        content = self.content
        if self.mapped_for_writing:
            self._collect(offset, len(data))
        self.host = None
        content.write(offset, data)
        self._show(offset, len(data))

    def truncate(self, size: int) -> None:
        """Make the file this long.  Raises `LinuxError`: EFBIG, EPERM."""
        content, old = self.content, self.size
        need_size(self.seals, old, size)
        self.host = None
        if self.mapped_for_writing:
            self._collect(min(size, old) // PAGE * PAGE, PAGE)
        content.truncate(size)
        if self._pages:
            self._forget_behind(size)
            self._show(min(old, size), abs(size - old))

    def clear(self, start: int, end: int) -> None:
        """Make a hole, or zeros.  Raises `LinuxError` EPERM."""
        need_unsealed(self.seals, NO_WRITING)
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

    def _forget_behind(self, end: int) -> None:
        """Forget the pages before which the file ends."""
        assert self._frames is not None
        for index in [index for index in self._pages if index * PAGE >= end]:
            self._frames.release(self._pages.pop(index))

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


def host_file(path: Path) -> RegularFile:
    """Return a file of the host as one of the guest's.  Raises OSError."""
    info = path.stat()
    file = RegularFile(stat.S_IMODE(info.st_mode), info.st_mtime_ns, host=path.resolve())
    file.links = info.st_nlink
    return file
