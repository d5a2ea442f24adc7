"""Pipes and FIFOs: a ring of page-sized buffers between readers and writers.

Source: Linux fs/pipe.c.
"""

# ruff: noqa: ARG002  (a pipe has no offsets, whatever it is given)

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import EBUSY, EINVAL, ENOMEM, ENOTTY, ENXIO, EPERM, EPIPE, ESPIPE, LinuxError
from emu.guest.linux.fs.inode import Fifo, Inode
from emu.guest.linux.fs.open_file import (
    FIONREAD,
    O_ACCMODE,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    READABLE,
    WRITABLE,
    Notices,
    OpenFile,
    UserMemory,
)
from emu.guest.linux.process.process import Wait

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

# Buffers of a new pipe (PIPE_DEF_BUFFERS).
_BUFFERS: Final = 16
# The most bytes that F_SETPIPE_SZ gives (/proc/sys/fs/pipe-max-size).
LARGEST_PIPE: Final = 1 << 20


class _Buffer:
    """One buffer of the ring (struct pipe_buffer): a page that is filled once and emptied once."""

    __slots__ = ("data", "packet", "start")

    def __init__(self, data: bytes, *, packet: bool) -> None:
        self.data = bytearray(data)
        self.start = 0
        self.packet = packet

    def __len__(self) -> int:
        return len(self.data) - self.start


class Pipe:
    """The pipe between the two ends (struct pipe_inode_info)."""

    def __init__(self, kernel: Kernel) -> None:
        self._memory = kernel.file_memory
        self._changed = kernel.schedule.blocked.changed
        self.buffers: deque[_Buffer] = deque()
        self.slots = _BUFFERS
        self.readers = self.writers = 0
        self.opened_for_reading = self.opened_for_writing = 0
        """How often each side was opened: an open that waits for the other side counts opens,
        because the other may be gone again."""
        self.arrivals = self.departures = 0
        """The number of times that readers, and writers, were woken."""
        self.written = self.taken = 0
        """How often the owners of the side to read from, and of the side to write to, were to be
        told."""

    @property
    def capacity(self) -> int:
        """Bytes that fit, if every buffer is full."""
        return self.slots * PAGE

    @property
    def held(self) -> int:
        """Bytes to read (FIONREAD)."""
        return sum(map(len, self.buffers))

    @property
    def full(self) -> bool:
        """Whether no buffer is free."""
        return len(self.buffers) >= self.slots

    def resize(self, size: int) -> int:
        """Give the pipe a capacity of `size` bytes, and return what it has now.

        Raises `LinuxError`: EINVAL, EPERM above the system's limit, EBUSY if more is in use.
        """
        slots = 1 if size < PAGE else 1 << (-(-size // PAGE) - 1).bit_length()
        if size > 1 << 31 or size < 0:
            raise LinuxError(EINVAL)
        if slots > self.slots and slots * PAGE > LARGEST_PIPE:
            raise LinuxError(EPERM)
        if slots < len(self.buffers):
            raise LinuxError(EBUSY)
        if slots > self.slots:
            self.departures += 1
        self.slots = slots
        self._changed(self)
        return self.capacity

    def __del__(self) -> None:
        self._memory.give_back(len(self.buffers))

    def put(self, data: bytes, *, packet: bool = False) -> int:
        """Append as many bytes as fit, and return their number.

        The part of a write that does not fill a page goes into the last buffer if it fits there, so
        a write of up to a page (PIPE_BUF) is done whole or not at all.  Raises `LinuxError` ENOMEM:
        the guest's memory, where buffers are, is full.
        """
        done = 0
        rest = len(data) % PAGE
        last = self.buffers[-1] if self.buffers else None
        if rest and last is not None and not last.packet and len(last.data) + rest <= PAGE:
            last.data += data[:rest]
            done = rest
        while done < len(data) and not self.full:
            part = data[done : done + PAGE]
            try:
                self._memory.take(1)
            except LinuxError:
                if done:
                    break
                raise LinuxError(ENOMEM) from None
            self.buffers.append(_Buffer(part, packet=packet))
            done += len(part)
        if done:
            self.arrivals += 1
            self.written += 1
            self._changed(self)
        return done

    def take(self, size: int) -> bytes:
        """Remove and return up to `size` bytes; not more than one packet, whose rest is lost."""
        was_full = self.full
        self.taken += 1
        taken = bytearray()
        while self.buffers and len(taken) < size:
            first = self.buffers[0]
            part = first.data[first.start : first.start + size - len(taken)]
            first.start += len(part)
            taken += part
            if first.packet or not len(first):
                self.buffers.popleft()
                self._memory.give_back(1)
            if first.packet:
                break
        if was_full and not self.full:
            self.departures += 1
            self._changed(self)
        return bytes(taken)

    def told_of_end(self) -> None:
        """Let both sides hear that one of them is gone."""
        self.written += 1
        self.taken += 1
        self._changed(self)

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes and leave them there (tee)."""
        seen = bytearray()
        for buffer in self.buffers:
            seen += buffer.data[buffer.start : buffer.start + size - len(seen)]
            if len(seen) >= size:
                break
        return bytes(seen)


class PipeEnd(OpenFile):
    """One end of a pipe, or both (a FIFO that was opened for reading and writing)."""

    takes_offsets = False

    def __init__(self, pipe: Pipe, inode: Inode, flags: int, path: str, *, packets: int = 0) -> None:
        super().__init__(inode, flags, path)
        self.pipe = pipe
        self.packet_flag = packets
        """The flag that makes a write a packet: O_DIRECT of this ISA."""
        self.no_writer_yet = -1
        """How often the pipe had been opened for writing when this end was opened without waiting:
        the absence of writers that never came is not a hang-up."""
        if self.can_read:
            pipe.readers += 1
            pipe.opened_for_reading += 1
        if self.can_write:
            pipe.writers += 1
            pipe.opened_for_writing += 1

    @property
    def key(self) -> object:
        """The pipe: it tells of changes."""
        return self.pipe

    def wakeups(self, events: int) -> int:
        """Return how often a thread that waits for these events was woken."""
        return (self.pipe.arrivals if self.can_read else 0) + (self.pipe.departures if self.can_write else 0)

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return Notices(self.pipe.written if self.can_read else 0, self.pipe.taken if self.can_write else 0)

    def events(self) -> int:
        """Return what poll says."""
        pipe, events = self.pipe, 0
        if self.can_read:
            events |= READABLE if pipe.buffers else 0
            if not pipe.writers and self.no_writer_yet != pipe.opened_for_writing:
                events |= POLLHUP
        if self.can_write:
            events |= 0 if pipe.full else WRITABLE
            events |= 0 if pipe.readers else POLLERR
        return events

    def read_ready(self) -> bool:
        """Return whether there is something to read, or no writer."""
        return bool(self.pipe.buffers) or not self.pipe.writers

    def write_ready(self) -> bool:
        """Return whether a buffer is free, or there is no reader."""
        return not self.pipe.full or not self.pipe.readers

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Return the available bytes.  Raises `LinuxError` ESPIPE."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return self.pipe.take(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write as many bytes as fit.  Raises `LinuxError`: ESPIPE, EPIPE."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        if not data:
            return 0
        if not self.pipe.readers:
            raise LinuxError(EPIPE)
        return self.pipe.put(data, packet=bool(self.flags & self.packet_flag))

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Return the number of bytes in the pipe."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        memory.write(argument, self.pipe.held.to_bytes(4, "little"))
        return 0

    def closed(self) -> None:
        """Leave the pipe."""
        pipe = self.pipe
        pipe.readers -= self.can_read
        pipe.writers -= self.can_write
        pipe.arrivals += 1
        pipe.departures += 1
        if not pipe.readers or not pipe.writers:
            pipe.told_of_end()
        if isinstance(self.inode, Fifo) and not pipe.readers and not pipe.writers:
            self.inode.pipe = None


def make_pipe(kernel: Kernel, flags: int, packets: int) -> tuple[PipeEnd, PipeEnd]:
    """Return the two ends of a new pipe, the one to read from first.

    `packets` is the ISA's O_DIRECT.
    """
    pipe, inode = Pipe(kernel), Fifo(0o600, kernel.wall())
    inode.pipe, inode.anonymous = pipe, True
    name = f"pipe:[{kernel.numbered(inode).number}]"
    reader, writer = (
        PipeEnd(pipe, inode, kind | flags & (O_NONBLOCK | packets), name, packets=packets)
        for kind in (O_RDONLY, O_WRONLY)
    )
    return reader, writer


def open_fifo(kernel: Kernel, inode: Fifo, flags: int, path: str, packets: int) -> Generator[Wait, bool, OpenFile]:
    """Open a FIFO; one side waits until the other has been opened since.

    A pipe that has no name is opened again through /proc and never waits.  Raises `LinuxError`
    ENXIO.
    """
    if isinstance(inode.pipe, OpenFile):
        return inode.pipe.again(flags, path)
    pipe = inode.pipe if isinstance(inode.pipe, Pipe) else Pipe(kernel)
    mode = flags & O_ACCMODE
    if mode == O_ACCMODE:
        raise LinuxError(EINVAL)
    named = not inode.anonymous
    if mode == O_WRONLY and named and flags & O_NONBLOCK and not pipe.readers:
        raise LinuxError(ENXIO)
    inode.pipe = pipe
    end = PipeEnd(pipe, inode, flags, path, packets=packets)
    if mode == O_RDWR or not named:
        return end
    if mode == O_RDONLY and not pipe.writers:
        seen = pipe.opened_for_writing
        if flags & O_NONBLOCK:
            end.no_writer_yet = seen
        else:
            yield from _partner(end, lambda: pipe.opened_for_writing != seen)
    elif mode == O_WRONLY and not pipe.readers:
        seen = pipe.opened_for_reading
        yield from _partner(end, lambda: pipe.opened_for_reading != seen)
    return end


def _partner(end: PipeEnd, came: Callable[[], bool]) -> Generator[Wait, bool, None]:
    try:
        yield Wait(came)
    except BaseException:
        end.closed()
        raise
