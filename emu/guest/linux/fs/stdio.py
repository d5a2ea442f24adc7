"""The user's own standard input, output and error, as the guest's programs have them."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Final

from emu.guest.linux.errno import ESPIPE, LinuxError
from emu.guest.linux.fs.inode import Fifo, Inode
from emu.guest.linux.fs.open_file import O_RDONLY, O_WRONLY, READABLE, WRITABLE, OpenFile
from emu.support.immutable import immutable

# Seconds between two looks whether the user has interrupted.
_PATIENCE: Final = 0.2


class Stream(OpenFile):
    """A stream of the host: the user's own standard input, output or error."""

    def __init__(
        self,
        inode: Inode,
        flags: int,
        path: str,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
        ready: Callable[[], bool],
    ) -> None:
        super().__init__(inode, flags, path)
        self._read = read
        self._write = write
        self._ready = ready

    host = True
    takes_offsets = False

    def again(self, flags: int, path: str) -> Stream:
        """Return the same stream."""
        return Stream(self.inode, flags, path, self._read, self._write, self._ready)

    def events(self) -> int:
        """Return what poll says: the user's terminal or pipe is always written to."""
        events = READABLE if self.can_read and self._ready() else 0
        return events | (WRITABLE if self.can_write else 0)

    def read_ready(self) -> bool:
        """Return whether the user has typed something."""
        return self._ready()

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read the bytes that have arrived."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return self._read(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write it."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        self._write(data)
        return len(data)


@immutable
class Standard:
    """The guest's three standard streams.

    `descriptor` is what is waited for, None: `read` never blocks.
    """

    read: Callable[[int], bytes] = lambda _size: b""
    write: Callable[[bytes], object] = lambda _data: None
    error: Callable[[bytes], object] = lambda _data: None
    descriptor: int | None = None

    def ready(self) -> bool:
        """Return whether reading would not block."""
        return self.descriptor is None or bool(select.select([self.descriptor], [], [], 0)[0])

    def wait(self, seconds: float | None) -> None:
        """Wait for input, not much longer than a user who interrupts would."""
        if self.descriptor is not None:
            select.select([self.descriptor], [], [], _PATIENCE if seconds is None else min(seconds, _PATIENCE))

    def streams(self) -> tuple[Stream, Stream, Stream]:
        """Return the three open files; to the guest they are pipes.

        Output that a program opens again to read it is at its end: what was written is with the
        user, and nobody writes more for the program to read.
        """

        def at_end(_size: int) -> bytes:
            return b""

        return (
            _stream(O_RDONLY, "pipe:[0]", self.read, lambda _data: None, self.ready),
            _stream(O_WRONLY, "pipe:[1]", at_end, self.write, lambda: True),
            _stream(O_WRONLY, "pipe:[2]", at_end, self.error, lambda: True),
        )


def _stream(
    flags: int,
    path: str,
    read: Callable[[int], bytes],
    write: Callable[[bytes], object],
    ready: Callable[[], bool],
) -> Stream:
    """Return a stream of the user's that a program can open again as /dev/stdin."""
    inode = Fifo(0o600)
    stream = Stream(inode, flags, path, read, write, ready)
    inode.pipe = stream
    return stream


def of_this_process(write: Callable[[bytes], object], error: Callable[[bytes], object]) -> Standard:
    """Return the streams of this process.

    Output goes through `write` and `error`, so that it stays in order.
    """
    return Standard(lambda size: os.read(0, size), write, error, 0)
