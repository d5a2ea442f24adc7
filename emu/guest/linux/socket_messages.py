"""Messages between sockets, and the queue of those that a socket has received.

Source: Linux net/unix/af_unix.c, net/core/scm.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from emu.guest.linux.files import OpenFile


@dataclass(frozen=True, slots=True)
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
    """Tells the sender that so many bytes were received."""
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

    def __init__(self) -> None:
        self._queue: deque[Message] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, message: Message) -> None:
        """Add a message."""
        self._queue.append(message)

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
            self._queue.popleft()
            message.taken(len(message.data))
        return got

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
        message.taken(len(part))
        message.files = ()
        if len(part) == len(message.data):
            self._queue.popleft()
        else:
            message.data = message.data[len(part) :]

    def drop(self) -> None:
        """Drop all messages: the socket was closed."""
        while self._queue:
            message = self._queue.popleft()
            message.taken(len(message.data))
            release(message.files)


def share(files: Iterable[OpenFile]) -> None:
    """Count one user more for each file."""
    for file in files:
        file.users += 1


def release(files: Iterable[OpenFile]) -> None:
    """Drop files that were on their way and that no process takes."""
    for file in files:
        file.users -= 1
        if not file.users:
            file.closed()
