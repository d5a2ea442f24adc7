"""Messages between sockets, and the queue of those that a socket has received.

Source: Linux net/unix/af_unix.c, net/core/scm.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import ENOBUFS, LinuxError
from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.fs.page_cache import FileMemory
from emu.support.immutable import immutable

# sizeof (struct sk_buff), and of struct skb_shared_info behind the data, each in whole cache lines.
_BUFFER, _SHARED = 256, 320
# The largest part of a message that is in one piece with its head: in streams (SKB_MAX_HEAD), in datagrams
# (SKB_MAX_ALLOC).
_HEAD, _PIECE = PAGE - _SHARED, 4 * PAGE - _SHARED
# The longest message of a stream (SKB_MAX_HEAD + UNIX_SKB_FRAGS_SZ): more is sent as several.
LONGEST_PART: Final = _HEAD + 8 * PAGE


def memory_of(size: int, *, stream: bool) -> int:
    """Return the bytes that a message with so much data takes (skb->truesize)."""
    pages = -(-max(0, size - (_HEAD if stream else _PIECE)) // PAGE) * PAGE
    head = -(-max(0, size - pages) // 64) * 64 + _SHARED
    return _BUFFER + max(512, 1 << (head - 1).bit_length()) + -(-min(size, pages) // PAGE) * PAGE


@immutable
class Credentials:
    """The process that connected or sent, as it was then (struct ucred)."""

    pid: int
    uid: int
    gid: int


@dataclass(slots=True)
class Message:
    """The data that one call has sent (struct sk_buff)."""

    data: bytes
    name: bytes
    """The sender's address."""
    credentials: Credentials
    taken: Callable[[int], None]
    """Tells the sender that so much memory is free again."""
    memory: int = 0
    """Bytes of memory that it takes."""
    files: tuple[OpenFile, ...] = ()
    """Files on their way (SCM_RIGHTS); each counts as one user."""


@dataclass(slots=True)
class Received:
    """The result of one receive call."""

    data: bytes = b""
    name: bytes = b""
    files: tuple[OpenFile, ...] = ()
    credentials: Credentials | None = None
    full_size: int = 0
    """Bytes that the message had; more than `data` if the rest was cut off."""


class Inbox:
    """The messages that wait in a socket."""

    def __init__(self, memory: FileMemory) -> None:
        self._queue: deque[Message] = deque()
        self._memory = memory
        self._bytes = 0
        """Bytes of memory that the messages take."""

    def __del__(self) -> None:
        self._use(-self._bytes)

    def _use(self, size: int) -> None:
        """Count memory more or less.  Raises `LinuxError` ENOBUFS: the guest's memory is full."""
        pages = -(-(self._bytes + size) // PAGE) - -(-self._bytes // PAGE)
        try:
            self._memory.take(pages) if pages > 0 else self._memory.give_back(-pages)
        except LinuxError:
            raise LinuxError(ENOBUFS) from None
        self._bytes += size

    def messages(self) -> Iterator[Message]:
        """Yield the messages, the first one first."""
        yield from self._queue

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, message: Message) -> None:
        """Add a message.  Raises `LinuxError` ENOBUFS."""
        self._use(message.memory)
        self._queue.append(message)

    def extend(self, data: bytes, most: int) -> bool:
        """Add data to the last message; return whether it is not longer than `most` with it.

        Raises `LinuxError` ENOBUFS.
        """
        if not self._queue or len(self._queue[-1].data) + len(data) > most:
            return False
        self._use(len(data))
        self._queue[-1].data += data
        self._queue[-1].memory += len(data)
        return True

    @property
    def memory_used(self) -> int:
        """Bytes of memory that the messages take."""
        return self._bytes

    def size(self) -> int:
        """Return the bytes of all messages."""
        return sum(len(message.data) for message in self._queue)

    def first_size(self) -> int:
        """Return the bytes of the next message; 0: there is none."""
        return len(self._queue[0].data) if self._queue else 0

    def next_message(self, size: int, *, peek: bool) -> Received:
        """Return the next message, cut off after `size` bytes.  With `peek` it stays."""
        message = self._queue[0]
        got = Received(message.data[:size], message.name, message.files, message.credentials, len(message.data))
        if peek:
            share(message.files)
        else:
            self._remove()
        return got

    def _remove(self) -> Message:
        """Take the next message out."""
        message = self._queue.popleft()
        self._use(-message.memory)
        message.taken(message.memory)
        return message

    def joined(self, size: int, *, peek: bool, one_sender: bool) -> Received:
        """Return up to `size` bytes of a stream: messages joined, up to the first that has files.

        With `one_sender` the messages are of one process.  With `peek` they stay.
        """
        first = self._queue[0]
        data = bytearray()
        files: tuple[OpenFile, ...] = ()
        for message in list(self._queue):
            if len(data) >= size or (one_sender and message.credentials != first.credentials):
                break
            part = message.data[: size - len(data)]
            data += part
            files = message.files
            if peek:
                share(files)
            else:
                self._take(message, part)
            if files:
                break
        return Received(bytes(data), first.name, files, first.credentials, len(data))

    def _take(self, message: Message, part: bytes) -> None:
        """Take the beginning of the next message, and its files."""
        message.files = ()
        if len(part) == len(message.data):
            self._remove()
        else:
            message.data = message.data[len(part) :]

    def drop(self) -> None:
        """Drop all messages: the socket was closed."""
        while self._queue:
            release(self._remove().files)


def share(files: Iterable[OpenFile]) -> None:
    """Count one user more for each file."""
    for file in files:
        file.users += 1


def release(files: Iterable[OpenFile]) -> None:
    """Drop files that were on their way and that no process takes."""
    for file in files:
        file.drop()
