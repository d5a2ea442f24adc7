"""Sockets between processes of the guest (AF_UNIX): streams, datagrams, and packets in order.

Nothing here knows the host: a socket's other end is always another socket of this guest.  Source:
Linux net/unix/af_unix.c, net/core/sock.c, net/core/scm.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from emu.guest.linux.content import FileMemory
from emu.guest.linux.errno import (
    EAGAIN,
    ECONNREFUSED,
    ECONNRESET,
    EINVAL,
    EISCONN,
    EMSGSIZE,
    ENOTCONN,
    ENOTTY,
    EOPNOTSUPP,
    EPIPE,
    EPROTOTYPE,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.files import FIONREAD, OpenFile
from emu.guest.linux.inodes import Inode
from emu.guest.linux.readiness import POLLERR, POLLHUP, POLLRDHUP, POLLWRBAND, READABLE, WRITABLE, Notices
from emu.guest.linux.socket_messages import (
    LONGEST_PART,
    Credentials,
    Inbox,
    Message,
    Received,
    memory_of,
    release,
    share,
)
from emu.guest.linux.user_memory import UserMemory

# Bytes that may be under way from a socket (net.core.wmem_default).
_SEND_BUFFER: Final = 212_992
# Datagrams that wait for a receiver who has not connected to the sender (net.unix.max_dgram_qlen).
_LONGEST_QUEUE: Final = 10
# The most connections that wait to be accepted (SOMAXCONN).
_BACKLOG_MAX: Final = 4096
_TIOCOUTQ: Final = 0x5411
_RECEIVE, _SEND = 1, 2


class Kind(IntEnum):
    """SOCK_* of `socket`."""

    STREAM = 1
    DGRAM = 2
    SEQPACKET = 5


@dataclass(slots=True)
class Options:
    """The options that setsockopt has set."""

    pass_credentials: bool = False
    receive_timeout: int | None = None
    """Nanoseconds; None: forever."""
    send_timeout: int | None = None
    others: dict[int, int] = field(default_factory=dict)
    """Integers that are only remembered, by option."""


class Socket(OpenFile):
    """A socket of the family AF_UNIX."""

    family = 1
    """AF_* of `socket`."""

    def __init__(
        self, inode: Inode, flags: int, path: str, kind: Kind, credentials: Credentials, memory: FileMemory
    ) -> None:
        super().__init__(inode, flags, path)
        self.kind = kind
        self.type = int(kind)
        """SOCK_* that was asked for."""
        self.credentials = credentials
        """The credentials of the process that made it, connected it or listens with it."""
        self.peer_credentials: Credentials | None = None
        self.name = b""
        """Its address without the family: a path, or b"\\0" and an abstract name; b"" for none."""
        self.unbind: Callable[[], object] = lambda: None
        self.peer: Socket | None = None
        self.connected = False
        self.backlog: int | None = None
        """The number of connections that may wait to be accepted; None: it does not listen."""
        self.waiting: deque[Socket] = deque()
        """Connections to accept: the sockets at this end of them."""
        self.inbox = Inbox(memory)
        self.shut = 0
        """_RECEIVE and _SEND, as far as they were shut down."""
        self.error = 0
        """The error of the next call (SO_ERROR)."""
        self.dead = False
        self.send_buffer = _SEND_BUFFER
        self.under_way = 0
        """Bytes of memory of what this socket has sent and no socket has received."""
        self._wants_room = False
        """Whether a write found no room since its owner was told of some."""
        self._told = Notices()
        self.options = Options()

    # -- state

    @property
    def is_stream(self) -> bool:
        """Whether messages have no borders."""
        return self.kind is Kind.STREAM

    @property
    def listening(self) -> bool:
        """Whether it takes connections."""
        return self.backlog is not None

    def wake(self) -> None:
        """Wake the threads that wait for the socket."""
        self.arrivals += 1
        self.departures += 1

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return self._told

    def note(self, *, input: bool = False, hang_up: bool = False) -> None:  # noqa: A002  as `Notices` calls it
        """Let its owner be told."""
        told = self._told
        self._told = Notices(told.input + input, told.room, told.hang_up + hang_up)

    def take_error(self) -> int:
        """Return the error that waits to be told, and forget it."""
        error, self.error = self.error, 0
        return error

    def events(self) -> int:
        """Return what poll says."""
        events = POLLERR if self.error else 0
        if self.shut == _RECEIVE | _SEND:
            events |= POLLHUP
        if self.shut & _RECEIVE:
            events |= POLLRDHUP | READABLE
        if self.inbox or self.waiting:
            events |= READABLE
        if self.kind is not Kind.DGRAM and not self.connected and not self.listening:
            events |= POLLHUP
        if self._has_room() and not self.listening:
            events |= WRITABLE | POLLWRBAND
        return events

    def _has_room(self) -> bool:
        if self.under_way * 4 > self.send_buffer and self.under_way:
            return False
        peer = self.peer
        return not (self.kind is Kind.DGRAM and peer is not None and peer.peer is not self and peer.queue_full)

    @property
    def queue_full(self) -> bool:
        """Whether a datagram of another socket would have to wait."""
        return len(self.inbox) > _LONGEST_QUEUE

    def read_ready(self) -> bool:
        """Return whether receiving would not wait."""
        return bool(self.inbox or self.waiting or self.shut & _RECEIVE or self.error)

    def write_ready(self) -> bool:
        """Return whether the write that found no room would not wait now."""
        return self.peer is None or self.can_send(self.peer)

    def can_send(self, target: Socket) -> bool:
        """Return whether sending would not wait, if only because it fails."""
        if self.shut & _SEND or target.dead or target.shut & _RECEIVE:
            return True
        if self.under_way >= self.send_buffer:
            return False
        return self.kind is not Kind.DGRAM or target.peer is self or not target.queue_full

    # -- connections

    def pair(self, other: Socket) -> None:
        """Connect two new sockets (socketpair)."""
        for one, peer in ((self, other), (other, self)):
            one.peer, one.connected, one.peer_credentials = peer, True, peer.credentials

    def listen(self, backlog: int, credentials: Credentials) -> None:
        """Take connections.  Raises `LinuxError`: EOPNOTSUPP, EINVAL."""
        if self.kind is Kind.DGRAM:
            raise LinuxError(EOPNOTSUPP)
        if not self.name or self.connected:
            raise LinuxError(EINVAL)
        self.backlog = min(backlog & 0xFFFF_FFFF, _BACKLOG_MAX)
        self.credentials = credentials
        self.wake()

    def accepts(self) -> bool:
        """Return whether a connection would not wait, if only because it fails."""
        return self.dead or self.backlog is None or bool(self.shut & _RECEIVE) or len(self.waiting) <= self.backlog

    def check_connect(self, other: Socket) -> None:
        """Return if a connection to `other` can be made or waited for.  Raises `LinuxError`."""
        if self.kind is not other.kind:
            raise LinuxError(EPROTOTYPE)
        if other.dead or not other.listening or other.shut & _RECEIVE:
            raise LinuxError(ECONNREFUSED)
        if self.connected:
            raise LinuxError(EISCONN)
        if self.listening:
            raise LinuxError(EINVAL)

    def connect(self, other: Socket, served: Socket, credentials: Credentials) -> None:
        """Connect to a socket that listens; `served` is the new socket at its end."""
        self.credentials = credentials
        served.credentials = other.credentials
        served.name = other.name
        self.pair(served)
        other.waiting.append(served)
        other.arrivals += 1
        other.note(input=True)
        self.wake()

    def connect_datagrams(self, other: Socket | None) -> None:
        """Send to `other` from now on, and receive only from it; None: from all.

        Raises `LinuxError`: ECONNREFUSED, EPROTOTYPE.
        """
        if other is not None:
            if other.dead:
                raise LinuxError(ECONNREFUSED)
            if other.kind is not Kind.DGRAM:
                raise LinuxError(EPROTOTYPE)
            if other.peer is not None and other.peer is not self:
                raise LinuxError(1)  # EPERM: it takes datagrams of its own peer alone
        self.peer, self.connected = other, other is not None
        self.wake()

    def shut_down(self, directions: int) -> None:
        """Shut down receiving (1), sending (2), or both (3); the other end hears of it."""
        self.shut |= directions
        self.wake()
        peer = self.peer
        if peer is not None and self.kind is not Kind.DGRAM:
            peer.shut |= (_SEND if directions & _RECEIVE else 0) | (_RECEIVE if directions & _SEND else 0)
            peer.wake()
            peer.note(hang_up=directions == _RECEIVE | _SEND, input=directions == _SEND)

    # -- sending

    def send(self, data: bytes, credentials: Credentials, *, files: Sequence[OpenFile] = (), to: Socket | None = None
             ) -> int:  # fmt: skip
        """Send as many bytes as fit, and return their number; -1: a datagram has to wait.

        Raises `LinuxError`: EPIPE, ENOTCONN, ECONNREFUSED, EMSGSIZE, ...
        """
        if self.error:
            raise LinuxError(self.take_error())
        if self.shut & _SEND:
            raise LinuxError(EPIPE)
        target = to or self.peer
        if target is None or (self.kind is not Kind.DGRAM and not self.connected):
            raise LinuxError(ENOTCONN)
        if self.kind is Kind.DGRAM:
            return self._send_datagram(data, credentials, files, target)
        if target.dead or target.shut & _RECEIVE:
            raise LinuxError(EPIPE)
        if not self.is_stream:
            if len(data) > self.send_buffer - 32:
                raise LinuxError(EMSGSIZE)
            if not self.can_send(target):
                self._wants_room = True
                return -1
            self._put(target, data, credentials, files)
            return len(data)
        done = 0
        while done < len(data) and self.under_way < self.send_buffer:
            part = data[done : done + min(LONGEST_PART, max(1, self.send_buffer // 2 - 64))]
            self._put(target, part, credentials, files)
            files = ()
            done += len(part)
        self._wants_room = self._wants_room or done < len(data)
        return done

    def _send_datagram(self, data: bytes, credentials: Credentials, files: Sequence[OpenFile], target: Socket) -> int:
        if len(data) > self.send_buffer - 32:
            raise LinuxError(EMSGSIZE)
        if target.dead:
            if target is self.peer:
                self.peer, self.connected = None, False
            raise LinuxError(ECONNREFUSED)
        if target.kind is not Kind.DGRAM:
            raise LinuxError(EPROTOTYPE)
        if target.peer is not None and target.peer is not self:
            raise LinuxError(1)  # EPERM: it takes datagrams of its own peer alone
        if target.shut & _RECEIVE:
            raise LinuxError(EPIPE)
        if not self.can_send(target):
            self._wants_room = True
            return -1
        self._put(target, data, credentials, files)
        return len(data)

    def _put(self, target: Socket, data: bytes, credentials: Credentials, files: Sequence[OpenFile]) -> None:
        memory = memory_of(len(data), stream=self.is_stream)
        target.inbox.put(Message(data, self.name, credentials, self._taken, memory, tuple(files)))
        share(files)
        self.under_way += memory
        target.arrivals += 1
        target.note(input=True)

    # -- receiving

    def receive(self, size: int, *, peek: bool = False) -> Received | None:
        """Return what has arrived, up to `size` bytes; None: nothing yet.

        Empty data means that the other end will send no more.  Raises `LinuxError`.
        """
        if self.kind is not Kind.DGRAM and not self.connected:
            raise LinuxError(EINVAL if self.is_stream else ENOTCONN)
        if not self.inbox:
            if self.error:
                raise LinuxError(self.take_error())
            return Received() if self.shut & _RECEIVE else None
        if not self.is_stream:
            return self.inbox.next_message(size, peek=peek)
        return self.inbox.joined(size, peek=peek, one_sender=self.options.pass_credentials)

    def _taken(self, size: int) -> None:
        """Hear that the other end has received something."""
        self.under_way -= size
        self.departures += 1
        if self._wants_room and self._has_room():
            self._wants_room = False
            self._told = self._told._replace(room=self._told.room + 1)

    # -- as a file

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Receive.  Raises `LinuxError`: EAGAIN where `read_ready` was not asked."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        got = self.receive(size)
        if got is None:
            raise LinuxError(EAGAIN)
        release(got.files)
        return got.data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Send.  Raises `LinuxError`."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return max(0, self.send(data, self.credentials))

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Return the number of bytes that can be received, or that are in transit.

        Raises `LinuxError`: EINVAL, ENOTTY.
        """
        if request == FIONREAD:
            if self.listening:
                raise LinuxError(EINVAL)
            told = self.inbox.first_size() if self.kind is Kind.DGRAM else self.inbox.size()
        elif request == _TIOCOUTQ:
            told = self.under_way
        else:
            raise LinuxError(ENOTTY)
        memory.write(argument, told.to_bytes(4, "little"))
        return 0

    def closed(self) -> None:
        """End what is connected here.

        The other end reads to the end of what was sent, and hears of what was lost.
        """
        self.dead = True
        self.unbind()
        peer = self.peer
        if peer is not None and self.kind is not Kind.DGRAM:
            peer.shut = _RECEIVE | _SEND
            if self.inbox:
                peer.error = ECONNRESET
            peer.wake()
            peer.note(hang_up=True)
        for served in self.waiting:
            if served.peer is not None:
                served.peer.error = ECONNRESET
            served.closed()
        self.waiting.clear()
        self.inbox.drop()
