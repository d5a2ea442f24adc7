"""The contents of regular files: sparse bytes, counted against the guest's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EFBIG, ENOSPC, LinuxError

# The largest file (MAX_LFS_FILESIZE).
LARGEST: Final = (1 << 63) - 1


class FileMemory:
    """Counts the pages that files hold, of `free()` bytes for files and processes."""

    def __init__(self, free: Callable[[], int]) -> None:
        self._free = free
        self.pages = 0

    def take(self, pages: int) -> None:
        """Count pages more.  Raises `LinuxError` ENOSPC."""
        if (self.pages + pages) * PAGE > self._free():
            raise LinuxError(ENOSPC)
        self.pages += pages

    def give_back(self, pages: int) -> None:
        """Count pages less."""
        self.pages -= pages


class Content:
    """The bytes of one file: `base`, which never changes, and the pages that were written over it.

    What is neither in `base` nor in a page is a hole, which reads as zeros.
    """

    def __init__(self, base: bytes = b"") -> None:
        self.memory: FileMemory | None = None
        """Counts the pages, once the file can be written."""
        self.size = len(base)
        self._base = base
        self._pages: dict[int, bytearray] = {}
        self._counted: FileMemory | None = None

    def __del__(self) -> None:
        self._give_back(len(self._pages))

    @property
    def allocated(self) -> int:
        """Bytes that are kept: without the holes."""
        base = -(-len(self._base) // PAGE)
        over = sum(1 for index in self._pages if index < base) if base else 0
        return (len(self._pages) - over) * PAGE + len(self._base)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        if not self._pages and end <= len(self._base):
            return self._base[offset:end]
        first, last = offset // PAGE, (end - 1) // PAGE
        data = b"".join(self._page(index) for index in range(first, last + 1))
        return data[offset - first * PAGE : end - first * PAGE]

    def _page(self, index: int) -> bytes | bytearray:
        page = self._pages.get(index)
        if page is not None:
            return page
        return self._base[index * PAGE : index * PAGE + PAGE].ljust(PAGE, b"\0")

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes; a gap before them is a hole.

        Raises `LinuxError`: EFBIG, ENOSPC; then nothing is written.
        """
        end = offset + len(data)
        if end > LARGEST:
            raise LinuxError(EFBIG)
        if not data:
            return
        self._own(offset // PAGE, (end - 1) // PAGE + 1)
        done = 0
        while done < len(data):
            index, start = divmod(offset + done, PAGE)
            step = min(PAGE - start, len(data) - done)
            self._pages[index][start : start + step] = data[done : done + step]
            done += step
        self.size = max(self.size, end)

    def allocate(self, offset: int, size: int) -> None:
        """Keep the pages of a part.  Raises `LinuxError`: EFBIG, ENOSPC."""
        if offset + size > LARGEST:
            raise LinuxError(EFBIG)
        self._own(offset // PAGE, -(-(offset + size) // PAGE))

    def truncate(self, size: int) -> None:
        """Make the file this long.  Raises `LinuxError` EFBIG."""
        if size > LARGEST:
            raise LinuxError(EFBIG)
        if size < self.size:
            self.clear(size, self.size)
            self._base = self._base[:size]
        self.size = size

    def clear(self, start: int, end: int) -> None:
        """Make zeros of a part: holes, where it holds whole pages."""
        end = min(end, self.size)
        if start >= end:
            return
        first, last = start // PAGE, -(-end // PAGE)
        inner = range(-(-start // PAGE), last if end == self.size else end // PAGE)
        for index in {first, last - 1}:
            if index in inner:
                continue
            page = self._pages.get(index) if not self._base else self._owned(index)
            if page is not None:
                low, high = max(start - index * PAGE, 0), min(end - index * PAGE, PAGE)
                page[low:high] = bytes(high - low)
        if inner.start * PAGE < len(self._base):
            if inner.stop * PAGE < len(self._base):  # the rest of what never changed becomes pages
                self._own(inner.stop, -(-len(self._base) // PAGE))
            self._base = self._base[: inner.start * PAGE]
        gone = [index for index in self._pages if index in inner]
        for index in gone:
            del self._pages[index]
        self._give_back(len(gone))

    def data_from(self, offset: int) -> int | None:
        """Return the offset of the next data (SEEK_DATA); None: the rest is a hole."""
        if offset < len(self._base):
            return offset
        after = [index for index in self._pages if index >= offset // PAGE]
        return max(offset, min(after) * PAGE) if after else None

    def hole_from(self, offset: int) -> int:
        """Return the offset of the next hole (SEEK_HOLE), which may be the file's end."""
        index = offset // PAGE
        while index * PAGE < self.size and (index in self._pages or index * PAGE < len(self._base)):
            index += 1
        return min(max(offset, index * PAGE), self.size)

    def _owned(self, index: int) -> bytearray:
        self._own(index, index + 1)
        return self._pages[index]

    def _own(self, first: int, last: int) -> None:
        if self._counted is None and self.memory is not None:
            self.memory.take(len(self._pages))
            self._counted = self.memory
        pages = _bounded(first, last)
        if self._counted is not None:
            # The shorter of the two is walked: a file may be small, and the requested part larger than any memory.
            walked, looked_up = (self._pages, pages) if len(self._pages) < len(pages) else (pages, self._pages)
            present = sum(map(looked_up.__contains__, walked))
            if present == len(pages):
                return
            self._counted.take(len(pages) - present)
        for index in pages:
            if index not in self._pages:
                self._pages[index] = bytearray(self._page(index))

    def _give_back(self, pages: int) -> None:
        if self._counted is not None:
            self._counted.give_back(pages)


def _bounded(first: int, last: int) -> range:
    """Return the numbers of pages.  Raises `LinuxError` ENOSPC: more than any memory has."""
    if last - first > 1 << 24:
        raise LinuxError(ENOSPC)
    return range(first, last)
