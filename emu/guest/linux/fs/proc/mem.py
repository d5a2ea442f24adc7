"""/proc/PID/mem: the memory of a process as a file, whose offsets are addresses.

Reads and writes ignore the rights of mappings, as a debugger's do, and a write gives the process
its own copy of a page that it shares (access_remote_vm with FOLL_FORCE).  A write over a breakpoint
replaces it.

Source: Linux fs/proc/base.c, mem_open(), mem_rw(), mem_lseek().
"""

from __future__ import annotations

import stat

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EINVAL, EIO, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.process.process import Process
from emu.support.words import WORD_MASK, BadAddressError

_SEEK_SET, _SEEK_CUR = 0, 1


class MemoryFile(Inode):
    """The file /proc/PID/mem of a process."""

    kind = stat.S_IFREG

    def __init__(self, process: Process) -> None:
        super().__init__(0o600)
        self.process = process


class MemoryOpen(OpenFile):
    """The memory of a process that is open: that of the program which it ran when it was opened."""

    inode: MemoryFile

    def __init__(self, inode: MemoryFile, flags: int, path: str) -> None:
        super().__init__(inode, flags, path)
        self._space = inode.process.space

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read up to the first address that is not mapped; nothing from a program that has ended.

        Raises `LinuxError` EIO if the first address is not mapped.
        """
        data = self._space.peek_mapped(self._start(offset), size)
        self._done(len(data), size, offset)
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write up to the first address that is not mapped; nothing to a program that has ended.

        Raises `LinuxError` EIO if the first address is not mapped.
        """
        start = self._start(offset)
        written = 0
        while written < len(data):
            at = start + written
            part = data[written : written + PAGE - at % PAGE]
            try:
                self._space.poke(at, part)
            except BadAddressError:
                break
            written += len(part)
        return self._done(written, len(data), offset)

    def seek(self, offset: int, whence: int) -> int:
        """Move from the start or the position; addresses may be above the largest offset."""
        if whence not in {_SEEK_SET, _SEEK_CUR}:
            raise LinuxError(EINVAL)
        self.position = (offset if whence == _SEEK_SET else self.position + offset) & WORD_MASK
        return self.position

    def _start(self, offset: int | None) -> int:
        return (self.position if offset is None else offset) & WORD_MASK

    def _done(self, count: int, asked: int, offset: int | None) -> int:
        if asked and not count and self._space.users:
            raise LinuxError(EIO)
        if offset is None:
            self.position += count
        return count
