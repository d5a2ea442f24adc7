"""The state of a socket, and whether a call on it would wait.

The rules here are those of AF_UNIX; sockets of other families derive from them.  Source: Linux
net/unix/af_unix.c, net/core/sock.c.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import POLLERR, POLLHUP, POLLRDHUP, POLLWRBAND, READABLE, WRITABLE, Notices, OpenFile
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.skb import Credentials, Inbox

# Bytes that may be under way from a socket, and wait in one (net.core.wmem_default, rmem_default).
_SEND_BUFFER: Final = 212_992
_RECEIVE_BUFFER: Final = 212_992
# Datagrams that wait for a receiver who has not connected to the sender (net.unix.max_dgram_qlen).
_LONGEST_QUEUE: Final = 10
# Options of the level SOL_SOCKET that decide who may share an address.
SOL_SOCKET: Final = 1
SO_REUSEADDR, SO_REUSEPORT = 2, 15
# Directions that are shut down.
RECEIVE, SEND = 1, 2


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
    linger: int | None = None
    """Seconds that closing waits for what was sent; None: it does not wait."""
    linger_time: int = 0
    """The value that was set last, in effect or not."""
    others: dict[tuple[int, int], int] = field(default_factory=dict)
    """Integers that are only remembered, by level and option."""

    def copy(self) -> Options:
        """Return the same, apart."""
        return replace(self, others=dict(self.others))


class SocketEnd(OpenFile):
    """A socket without its calls: its state, and whether a call would wait."""

    takes_offsets = False

    family = 1
    """AF_* of `socket`."""
    protocol = 0
    """IPPROTO_* of `socket`."""

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
        self.peer: SocketEnd | None = None
        self.connected = False
        self.backlog: int | None = None
        """The number of connections that may wait to be accepted; None: it does not listen."""
        self.waiting: deque[SocketEnd] = deque()
        """Connections to accept: the sockets at this end of them."""
        self.inbox = Inbox(memory)
        self.shut = 0
        """RECEIVE and SEND, as far as they were shut down."""
        self.error = 0
        """The error of the next call (SO_ERROR)."""
        self.dead = False
        self.send_buffer = _SEND_BUFFER
        self.receive_buffer = _RECEIVE_BUFFER
        self.under_way = 0
        """Bytes of memory of what this socket has sent and no socket has received."""
        self.wants_space = False
        """Whether a write found the buffer full since its owner was last told of space."""
        self._told = Notices()
        self.options = Options()

    @property
    def is_stream(self) -> bool:
        """Whether messages have no borders."""
        return self.kind is Kind.STREAM

    @property
    def listening(self) -> bool:
        """Whether it takes connections."""
        return self.backlog is not None

    def packed(self, name: bytes) -> bytes:
        """Return an address that the socket knows as a struct sockaddr."""
        end = b"\0" if name and name[:1] != b"\0" else b""
        return struct.pack("<H", self.family) + name + end

    def own_address(self) -> bytes:
        """Return its struct sockaddr."""
        return self.packed(self.name)

    def peer_address(self) -> bytes | None:
        """Return the struct sockaddr of the other end; None: it is not connected."""
        return self.packed(self.peer.name) if self.peer is not None and self.connected else None

    def accepted_from(self) -> bytes:
        """Return the struct sockaddr of the other end of a connection that is accepted."""
        return self.peer_address() or b""

    def wake(self) -> None:
        """Wake the threads that wait for the socket."""
        self.arrivals += 1
        self.departures += 1

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return self._told

    def note(self, *, input: bool = False, hang_up: bool = False) -> None:  # noqa: A002  as `Notices` calls it
        """Notify its owner."""
        told = self._told
        self._told = Notices(told.input + input, told.output, told.hang_up + hang_up)

    def take_error(self) -> int:
        """Return the error that waits to be told, and forget it."""
        error, self.error = self.error, 0
        return error

    def events(self) -> int:
        """Return what poll says."""
        events = POLLERR if self.error else 0
        if self.shut == RECEIVE | SEND:
            events |= POLLHUP
        if self.shut & RECEIVE:
            events |= POLLRDHUP | READABLE
        if self.inbox or self.waiting:
            events |= READABLE
        if self.kind is not Kind.DGRAM and not self.connected and not self.listening:
            events |= POLLHUP
        if self._has_space() and not self.listening:
            events |= WRITABLE | POLLWRBAND
        return events

    def _has_space(self) -> bool:
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
        return bool(self.inbox or self.waiting or self.shut & RECEIVE or self.error)

    def write_ready(self) -> bool:
        """Return whether the write that found the buffer full would not wait now."""
        return self.peer is None or self.can_send(self.peer)

    def can_send(self, target: SocketEnd) -> bool:
        """Return whether sending would not wait, if only because it fails."""
        if self.shut & SEND or target.dead or target.shut & RECEIVE:
            return True
        if self.under_way >= self.capacity(target):
            return False
        return self.kind is not Kind.DGRAM or target.peer is self or not target.queue_full

    def capacity(self, target: SocketEnd) -> int:  # noqa: ARG002  it counts for TCP
        """Return the bytes that may be under way to another socket."""
        return self.send_buffer

    def taken(self, size: int) -> None:
        """Handle that the other end has received something."""
        self.under_way -= size
        self.departures += 1
        if self.wants_space and self._has_space():
            self.wants_space = False
            self._told = self._told._replace(output=self._told.output + 1)
