"""Sockets between processes of the guest (AF_UNIX): streams, datagrams, and packets in order.

Nothing here knows the host: a socket's other end is always another socket of this guest.  Sockets
of the other families derive from these.

Source: Linux net/unix/af_unix.c, net/unix/garbage.c, net/core/sock.c, net/core/scm.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from emu.guest.linux.errno import (
    EAGAIN,
    ECONNREFUSED,
    ECONNRESET,
    EINVAL,
    EISCONN,
    EMSGSIZE,
    ENOTCONN,
    EOPNOTSUPP,
    EPERM,
    EPIPE,
    EPROTOTYPE,
    ESPIPE,
    LinuxError,
)
from emu.guest.linux.fs.open_file import FIONREAD, OpenFile, UserMemory
from emu.guest.linux.net import loopback
from emu.guest.linux.net.skb import LONGEST_PART, Credentials, Message, Received, memory_of, release, share
from emu.guest.linux.net.sock import RECEIVE, SEND, Kind, SocketEnd
from emu.guest.linux.process.process import Process

# The most connections that wait to be accepted (SOMAXCONN).
_BACKLOG_MAX: Final = 4096
_TIOCOUTQ: Final = 0x5411


class Socket(SocketEnd):
    """A socket of the family AF_UNIX: connecting, sending, receiving."""

    is_connection = False
    """Whether it is one of TCP: it takes no notice of addresses, and MSG_TRUNC throws data away."""

    # -- connections

    def pair(self, other: SocketEnd) -> None:
        """Connect two new sockets to each other."""
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
        return self.dead or self.backlog is None or bool(self.shut & RECEIVE) or len(self.waiting) <= self.backlog

    def check_connect(self, other: SocketEnd) -> None:
        """Return if a connection to `other` can be made or waited for.  Raises `LinuxError`."""
        if self.kind is not other.kind:
            raise LinuxError(EPROTOTYPE)
        if other.dead or not other.listening or other.shut & RECEIVE:
            raise LinuxError(ECONNREFUSED)
        if self.connected:
            raise LinuxError(EISCONN)
        if self.listening:
            raise LinuxError(EINVAL)

    def connect(self, other: SocketEnd, served: SocketEnd, credentials: Credentials) -> None:
        """Connect to a socket that listens; `served` is the new socket at its end."""
        self.credentials = credentials
        served.credentials = other.credentials
        served.name = other.name
        self.pair(served)
        other.waiting.append(served)
        other.arrivals += 1
        other.note(input=True)
        self.wake()

    def connect_datagrams(self, other: SocketEnd | None) -> None:
        """Send to `other` from now on, and receive only from it; None: from all.

        Raises `LinuxError`: ECONNREFUSED, EPROTOTYPE.
        """
        if other is not None:
            if other.dead:
                raise LinuxError(ECONNREFUSED)
            if other.kind is not Kind.DGRAM:
                raise LinuxError(EPROTOTYPE)
            if other.peer is not None and other.peer is not self:
                raise LinuxError(EPERM)  # it takes datagrams of its own peer alone
        self.peer, self.connected = other, other is not None
        self.wake()

    def take_connection(self) -> SocketEnd:
        """Return the next connection, which is accepted."""
        self.departures += 1
        return self.waiting.popleft()

    def shut_down(self, directions: int) -> None:
        """Shut down receiving (1), sending (2), or both (3); the other end hears of it."""
        self.shut |= directions
        self.wake()
        peer = self.peer
        if peer is not None and self.kind is not Kind.DGRAM:
            peer.shut |= (SEND if directions & RECEIVE else 0) | (RECEIVE if directions & SEND else 0)
            peer.wake()
            peer.note(hang_up=directions == RECEIVE | SEND, input=directions == SEND)

    # -- sending

    def send(self, data: bytes, credentials: Credentials, *, files: Sequence[OpenFile] = (), to: SocketEnd | None = None
             ) -> int:  # fmt: skip
        """Send as many bytes as fit, and return their number; -1: a datagram has to wait.

        Raises `LinuxError`: EPIPE, ENOTCONN, ECONNREFUSED, EMSGSIZE, ...
        """
        if self.error:
            raise LinuxError(self.take_error())
        if self.shut & SEND:
            raise LinuxError(EPIPE)
        if to is not None and to.family != self.family:
            raise LinuxError(EINVAL)
        target = to or self.peer
        if target is None or (self.kind is not Kind.DGRAM and not self.connected):
            raise LinuxError(ENOTCONN)
        if self.kind is Kind.DGRAM:
            return self._send_datagram(data, credentials, files, target)
        if target.dead or target.shut & RECEIVE:
            raise LinuxError(EPIPE)
        if not self.is_stream:
            if len(data) > self.send_buffer - 32:
                raise LinuxError(EMSGSIZE)
            if not self.can_send(target):
                self.wants_space = True
                return -1
            self.put(target, data, credentials, files)
            return len(data)
        return self.send_stream(data, credentials, files, target)

    def send_stream(self, data: bytes, credentials: Credentials, files: Sequence[OpenFile], target: SocketEnd) -> int:
        """Send as many bytes of a stream as fit, and return their number."""
        done = 0
        while done < len(data) and self.under_way < self.capacity(target):
            part = data[done : done + min(LONGEST_PART, max(1, self.send_buffer // 2 - 64))]
            self.put(target, part, credentials, files)
            files = ()
            done += len(part)
        self.wants_space = self.wants_space or done < len(data)
        return done

    def _send_datagram(
        self, data: bytes, credentials: Credentials, files: Sequence[OpenFile], target: SocketEnd
    ) -> int:
        if len(data) > self.send_buffer - 32:
            raise LinuxError(EMSGSIZE)
        if target.dead:
            if target is self.peer:
                self.peer, self.connected = None, False
            raise LinuxError(ECONNREFUSED)
        if target.kind is not Kind.DGRAM:
            raise LinuxError(EPROTOTYPE)
        if target.peer is not None and target.peer is not self:
            raise LinuxError(EPERM)  # it takes datagrams of its own peer alone
        if target.shut & RECEIVE:
            raise LinuxError(EPIPE)
        if not self.can_send(target):
            self.wants_space = True
            return -1
        self.put(target, data, credentials, files)
        return len(data)

    def put(self, target: SocketEnd, data: bytes, credentials: Credentials, files: Sequence[OpenFile]) -> None:
        """Put a message into another socket."""
        memory = memory_of(len(data), stream=self.is_stream)
        target.inbox.put(Message(data, self.name, credentials, self.taken, memory, tuple(files)))
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
            return Received() if self.shut & RECEIVE else None
        if not self.is_stream:
            return self.inbox.next_message(size, peek=peek)
        return self.inbox.joined(size, peek=peek, one_sender=self.options.pass_credentials)

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

    def patience(self) -> int | None:
        """Return how long receiving waits, in nanoseconds; None: until there is something."""
        return self.options.receive_timeout

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Send.  Raises `LinuxError`."""
        if offset is not None:
            raise LinuxError(ESPIPE)
        return max(0, self.send(data, self.credentials))

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Return the number of bytes that can be received, or that are in transit.

        Other requests are about the network's interface.  Raises `LinuxError`: EINVAL, ENOTTY, ...
        """
        if request == FIONREAD:
            if self.listening:
                raise LinuxError(EINVAL)
            told = self.inbox.first_size() if self.kind is Kind.DGRAM else self.inbox.size()
        elif request == _TIOCOUTQ:
            told = self.unsent()
        else:
            return loopback.control(memory, request, argument)
        memory.write(argument, told.to_bytes(4, "little"))
        return 0

    def unsent(self) -> int:
        """Return the bytes in transit, as SIOCOUTQ reports them.  Raises `LinuxError` EINVAL."""
        return self.under_way

    def closed(self) -> None:
        """End what is connected here.

        The other end reads to the end of what was sent, and hears of what was lost.
        """
        self.dead = True
        self.unbind()
        peer = self.peer
        if peer is not None and self.kind is not Kind.DGRAM:
            peer.shut = RECEIVE | SEND
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


def collect_garbage(processes: Iterable[Process], files: set[OpenFile]) -> None:
    """Drop the messages of those of the open `files` that are sockets no process can reach.

    A socket that is sent through another, and the other through it, stays open when both are
    closed.
    """
    reached: set[OpenFile] = set()
    to_visit = [table.get(number) for process in processes for table in process.tables for number in table]
    while to_visit:
        file = to_visit.pop()
        if file in reached:
            continue
        reached.add(file)
        if isinstance(file, Socket):
            to_visit += file.waiting
            to_visit += (sent for message in file.inbox.messages() for sent in message.files)
    for file in sorted(files - reached, key=lambda file: file.inode.number):
        if isinstance(file, Socket):
            file.inbox.drop()
