"""The table of a process's descriptors (struct files_struct).  Source: Linux fs/file.c."""

from __future__ import annotations

from collections.abc import Iterator

from emu.guest.linux.errno import EBADF, EMFILE, LinuxError
from emu.guest.linux.fs.open_file import FileTable, OpenFile


class Descriptors:
    """The descriptors of a process (files_struct)."""

    def __init__(self, table: FileTable, limit: int = 1024) -> None:
        self.table = table
        self.limit = limit
        self.users = 1
        """The processes, and threads with a table of their own, that have it."""
        self._files: dict[int, OpenFile] = {}
        self._low = 0
        """Every number below it is taken."""
        self._close_on_exec: set[int] = set()

    def get(self, number: int) -> OpenFile:
        """Return an open file.  Raises `LinuxError` EBADF."""
        file = self._files.get(number)
        if file is None:
            raise LinuxError(EBADF)
        return file

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._files))

    def add(self, file: OpenFile, *, lowest: int = 0, close_on_exec: bool = False) -> int:
        """Give a file the lowest free number.  Raises `LinuxError` EMFILE."""
        number = max(lowest, self._low)
        while number in self._files:
            number += 1
        if lowest <= self._low:
            self._low = number
        if number >= self.limit:
            raise LinuxError(EMFILE)
        self.put(number, file, close_on_exec=close_on_exec)
        return number

    def put(self, number: int, file: OpenFile, *, close_on_exec: bool = False) -> None:
        """Give a file this number; what had it is closed."""
        file.take(self.table)
        if number in self._files:
            self.close(number)
        self._files[number] = file
        self._close_on_exec.discard(number)
        if close_on_exec:
            self._close_on_exec.add(number)

    def close(self, number: int) -> None:
        """Close a descriptor.  Raises `LinuxError` EBADF."""
        file = self.get(number)
        del self._files[number]
        self._low = min(self._low, number)
        self._close_on_exec.discard(number)
        file.inode.release_locks(self)
        file.drop()

    def closes_on_exec(self, number: int) -> bool:
        """Return whether FD_CLOEXEC is set."""
        return number in self._close_on_exec

    def set_close_on_exec(self, number: int, *, close: bool) -> None:
        """Set or clear FD_CLOEXEC."""
        (self._close_on_exec.add if close else self._close_on_exec.discard)(number)

    def executed(self) -> None:
        """Close what does not outlive an exec."""
        for number in list(self._close_on_exec):
            self.close(number)

    def copy(self) -> Descriptors:
        """Return a table of the same open files."""
        child = Descriptors(self.table, self.limit)
        for number, file in self._files.items():
            child.put(number, file, close_on_exec=number in self._close_on_exec)
        return child

    def share(self) -> Descriptors:
        """Count a user more, and return this table."""
        self.users += 1
        return self

    def leave(self) -> None:
        """Count a user less; the last one closes everything."""
        self.users -= 1
        if not self.users:
            self.close_all()

    def unshared(self) -> Descriptors:
        """Return a table for one of its users alone, who leaves this one."""
        if self.users == 1:
            return self
        self.users -= 1
        return self.copy()

    def close_all(self) -> None:
        """Close everything."""
        for number in list(self._files):
            self.close(number)
