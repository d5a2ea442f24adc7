"""Sockets of TCP over the loopback.

A packet arrives as soon as it is sent, and no packet is lost: there are no timers, and a connection
that both ends have closed is gone at once (there is no TIME_WAIT).  Source: Linux net/ipv4/tcp.c,
tcp_input.c, inet_connection_sock.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from emu.guest.linux.errno import (
    EADDRINUSE,
    EADDRNOTAVAIL,
    ECONNABORTED,
    ECONNREFUSED,
    ECONNRESET,
    EINVAL,
    EISCONN,
    ENOTCONN,
    EPIPE,
    LinuxError,
)
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import (
    O_NONBLOCK,
    POLLERR,
    POLLHUP,
    POLLRDHUP,
    READABLE,
    WRITABLE,
    OpenFile,
    UserMemory,
)
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.addresses import Endpoint, Form
from emu.guest.linux.net.inet import InetSocket
from emu.guest.linux.net.ports import Ports
from emu.guest.linux.net.skb import Credentials, Message, Received
from emu.guest.linux.net.sock import RECEIVE, SEND, Kind, SocketEnd

# The buffers of a new socket (net.ipv4.tcp_wmem, tcp_rmem), and the one to send from of a connection, which Linux
# makes as large as the interface is fast.
_NEW_SEND_BUFFER, _RECEIVE_BUFFER = 16_384, 131_072
_SEND_BUFFER: Final = 2_626_560
# Small pieces of data are joined up to this size.
_JOINED: Final = 16_384
_SIOCATMARK: Final = 0x8905
_BACKLOG_MAX: Final = 4096
_BOTH: Final = RECEIVE | SEND


class State(IntEnum):
    """The state of a socket (include/net/tcp_states.h), as /proc/net/tcp and TCP_INFO tell it."""

    ESTABLISHED = 1
    SYN_SENT = 2
    FIN_WAIT2 = 5
    CLOSE = 7
    CLOSE_WAIT = 8
    LISTEN = 10


# The states in which the two ends know each other.
_CONNECTED: Final = frozenset({State.ESTABLISHED, State.FIN_WAIT2, State.CLOSE_WAIT})
_SENDING: Final = frozenset({State.ESTABLISHED, State.CLOSE_WAIT})


class TcpSocket(InetSocket):
    """A socket of TCP.  `make` makes the sockets of the connections to it."""

    protocol = 6
    is_connection = True
    peer: TcpSocket | None

    def __init__(
        self,
        inode: Inode,
        flags: int,
        path: str,
        credentials: Credentials,
        memory: FileMemory,
        form: Form,
        ports: Ports[TcpSocket],
        make: Callable[[], TcpSocket],
    ) -> None:
        super().__init__(inode, flags, path, Kind.STREAM, credentials, memory, form, ports)
        self.ports: Ports[TcpSocket] = ports
        self.state = State.CLOSE
        self.reports_connection = False
        """Whether `connect` has still to tell its result."""
        self.finished = False
        """Whether the other end will send no more (SOCK_DONE)."""
        self.send_buffer, self.receive_buffer = _NEW_SEND_BUFFER, _RECEIVE_BUFFER
        self._interrupts = False
        """Whether the error came while a call waited to send."""
        self.make = make
        self.knocking: deque[TcpSocket] = deque()
        """Sockets that connect to it and have to wait until it accepts others."""

    @property
    def can_bind(self) -> bool:
        """Whether it has no port yet, and is not connected."""
        return not self.has_port and self.state is State.CLOSE

    def peer_address(self) -> bytes | None:
        """Return the struct sockaddr of the other end; None: it is not connected."""
        return super().peer_address() if self.state in _CONNECTED else None

    # -- connections

    def listen(self, backlog: int, credentials: Credentials) -> None:
        """Take connections.  Raises `LinuxError`: EINVAL, EADDRINUSE."""
        if self.state not in {State.CLOSE, State.LISTEN} or self.reports_connection:
            raise LinuxError(EINVAL)
        if self.state is State.CLOSE:
            if not self.has_port:
                self.settle(Endpoint(self.local.host), EADDRINUSE)
            elif self.ports.conflict(self, self.local):
                raise LinuxError(EADDRINUSE)
        self.state = State.LISTEN
        self.shut = 0
        self.backlog = min(backlog & 0xFFFF_FFFF, _BACKLOG_MAX)
        self.credentials = credentials
        self.wake()

    def accepts(self) -> bool:
        """Return whether one more connection may wait."""
        return self.backlog is not None and len(self.waiting) <= self.backlog

    def begin(self, to: Endpoint) -> None:
        """Connect to an address: the state tells whether it has succeeded, or goes on.

        Raises `LinuxError`: EISCONN, ENETUNREACH, EADDRNOTAVAIL.
        """
        if self.state is not State.CLOSE:
            raise LinuxError(EISCONN)
        remote = Endpoint(self.route(to.host), to.port)
        local = Endpoint(self.source(remote.host), self.port)
        if local.port and self.ports.connection(local, remote) is not None:
            raise LinuxError(EADDRNOTAVAIL)
        self.settle(local, EADDRNOTAVAIL)
        self.remote = remote
        self.state = State.SYN_SENT
        self.reports_connection = True
        self.shut = 0
        self.finished = False
        listener = self.ports.receiver(remote, self.local, lambda other: other.listening)
        if listener is None:
            self.reset()
        elif listener.accepts():
            self.establish(listener)
        else:
            self.peer = listener
            listener.knocking.append(self)

    def connection_result(self) -> None:
        """Return if the connection was made.  Raises `LinuxError` with what it failed of."""
        self.reports_connection = False
        if self.state is State.CLOSE:
            self.shut = 0
            raise LinuxError(self.take_error() or ECONNABORTED)

    def establish(self, listener: TcpSocket) -> None:
        """Become connected to a new socket, which waits to be accepted."""
        assert self.remote is not None
        served = listener.make()
        served.inherit(listener)
        served.local, served.remote = self.remote, self.local
        served.ports.add(served)
        served.has_port = True
        self.pair(served)
        for end in (self, served):
            end.state = State.ESTABLISHED
            end.send_buffer = _SEND_BUFFER if end.send_buffer == _NEW_SEND_BUFFER else end.send_buffer
        listener.waiting.append(served)
        listener.arrivals += 1
        listener.note(input=True)
        self.wake()

    def inherit(self, listener: TcpSocket) -> None:
        """Take on the options of the socket that listens."""
        self.options = listener.options.copy()
        self.send_buffer, self.receive_buffer = listener.send_buffer, listener.receive_buffer
        self.only_v6 = listener.only_v6

    def take_connection(self) -> SocketEnd:
        """Return the next connection, and let one more connection wait."""
        served = super().take_connection()
        if self.knocking and self.accepts():
            self.knocking.popleft().establish(self)
        return served

    def disconnect(self) -> None:
        """End the connection at once; the socket can then be connected anew."""
        if self.state is State.LISTEN:
            self._stop_listening()
        elif self.state is not State.CLOSE:
            self.abort()
            self.error = ECONNRESET
        self.state = State.CLOSE
        self.connected = self.reports_connection = False
        self.peer = None
        self.shut = 0
        self.inbox.drop()
        self.forget_address()
        self.wake()

    def _stop_listening(self) -> None:
        """Refuse those who wait to be accepted."""
        self.state = State.CLOSE
        self.backlog = None
        for knocking in self.knocking:
            knocking.reset()
        self.knocking.clear()
        for served in self.waiting:
            assert isinstance(served, TcpSocket)
            served.abort()
            served.closed()
        self.waiting.clear()

    # -- the end of a connection

    def shut_down(self, directions: int) -> None:
        """Shut down receiving (1), sending (2), or both (3).  Raises `LinuxError` ENOTCONN."""
        if (self.state is State.LISTEN and directions & RECEIVE) or self.state is State.SYN_SENT:
            self.disconnect()
        elif self.state is not State.LISTEN:
            connected = self.state is not State.CLOSE
            self.shut |= directions
            if directions & SEND:
                self._finish()
            self.wake()
            if not connected:
                raise LinuxError(ENOTCONN)

    def _finish(self) -> None:
        """Tell the other end that this one sends no more (FIN)."""
        if self.state in _SENDING:
            self.state = State.FIN_WAIT2 if self.state is State.ESTABLISHED else State.CLOSE
            assert self.peer is not None
            self.peer.hear_finish()
            if self.state is State.CLOSE:
                self.shut = _BOTH

    def hear_finish(self) -> None:
        """Handle the end of the other end's data (FIN)."""
        self.finished = True
        self.shut |= RECEIVE
        if self.state is State.ESTABLISHED:
            self.state = State.CLOSE_WAIT
        elif self.state is State.FIN_WAIT2:
            self.state = State.CLOSE
            self.shut = _BOTH
        self.wake()
        self.note(input=self.shut != _BOTH, hang_up=self.shut == _BOTH)

    def abort(self) -> None:
        """End the connection with an error for the other end (RST)."""
        if self.state is State.SYN_SENT:
            assert self.peer is None or self in self.peer.knocking
            if self.peer is not None:
                self.peer.knocking.remove(self)
        elif self.state in _CONNECTED:
            assert self.peer is not None
            self.peer.reset()
        self.state = State.CLOSE

    def reset(self) -> None:
        """Handle the end of the connection (RST)."""
        if self.state is State.CLOSE:
            return
        errors = {State.SYN_SENT: ECONNREFUSED, State.CLOSE_WAIT: EPIPE}
        self.error = errors.get(self.state, ECONNRESET)
        self._interrupts = self.wants_space and not self.flags & O_NONBLOCK
        refused = self.state is State.SYN_SENT
        self.state = State.CLOSE
        self.shut = _BOTH
        if refused:
            self.peer = None
            self.forget_address()
        elif not self.keeps_port:
            self.give_port_back()
        self.wake()
        self.note(hang_up=True)

    def closed(self) -> None:
        """End the connection; with an error for the other end if data was left unread."""
        self.dead = True
        if self.state is State.LISTEN:
            self._stop_listening()
        elif self.state is State.SYN_SENT or self.inbox or self.options.linger == 0:
            self.abort()
        else:
            self._finish()
        self.ports.remove(self)
        self.inbox.drop()

    # -- data

    def send(self, data: bytes, credentials: Credentials, *, files: Sequence[OpenFile] = (), to: SocketEnd | None = None
             ) -> int:  # fmt: skip
        """Send as many bytes as fit, and return their number.

        Raises `LinuxError`: EPIPE, or the error that waits to be told.
        """
        del files, to
        if self.error:
            raise LinuxError(self._error_for_writer())
        if self.state is State.SYN_SENT:
            self.wants_space = True
            return 0
        peer = self.peer
        if self.state not in _SENDING or self.shut & SEND or peer is None:
            raise LinuxError(EPIPE)
        if data and peer.refuses_data:
            peer.reset()
            self.reset()
            return len(data)
        return self.send_stream(data, credentials, (), peer)

    def _error_for_writer(self) -> int:
        """Return the error for a call that sends.

        A call that has waited tells how much it has sent: the error stays for the next one.
        """
        if self._interrupts:
            self._interrupts = False
            return self.error
        return self.take_error()

    def send_stream(self, data: bytes, credentials: Credentials, files: Sequence[OpenFile], target: SocketEnd) -> int:
        """Send as many bytes as fit, and not one more."""
        space = max(0, self.capacity(target) - self.under_way)
        done = super().send_stream(data[:space], credentials, files, target)
        self.wants_space = self.wants_space or done < len(data)
        return done

    def put(self, target: SocketEnd, data: bytes, credentials: Credentials, files: Sequence[OpenFile]) -> None:
        """Deliver data to the other end."""
        del files
        if not target.inbox.extend(data, _JOINED):
            target.inbox.put(Message(data, b"", credentials, self.taken, len(data)))
        self.under_way += len(data)
        target.arrivals += 1
        target.note(input=True)

    def capacity(self, target: SocketEnd) -> int:
        """Return the capacity of the two buffers of one direction, in bytes."""
        return self.send_buffer + target.receive_buffer

    @property
    def refuses_data(self) -> bool:
        """Whether it answers data with RST, as it was closed or shut down in both directions."""
        return self.dead or (self.state is State.FIN_WAIT2 and bool(self.shut & RECEIVE))

    def can_send(self, target: SocketEnd) -> bool:
        """Return whether sending would not wait, if only because it fails."""
        if self.state is State.SYN_SENT:
            return False
        if self.error or self.shut & SEND or self.state not in _SENDING:
            return True
        return self.under_way < self.capacity(target) or self.peer is None or self.peer.refuses_data

    def taken(self, size: int) -> None:
        """Wake the threads that wait for space: the other end has received something."""
        departures, woken = self.departures, self.wants_space
        super().taken(size)
        if not woken or self.wants_space:
            self.departures = departures

    def _has_space(self) -> bool:
        return self._unsent() * 3 <= self.send_buffer * 2

    def _unsent(self) -> int:
        """Return the bytes that do not fit into the other end's buffer."""
        return 0 if self.peer is None else max(0, self.under_way - self.peer.receive_buffer)

    def unsent(self) -> int:
        """Return the bytes that do not fit into the other end's buffer.

        Raises `LinuxError` EINVAL.
        """
        if self.listening:
            raise LinuxError(EINVAL)
        return self._unsent()

    def receive(self, size: int, *, peek: bool = False) -> Received | None:
        """Return what has arrived, up to `size` bytes; None: nothing yet.

        Empty data means that the other end will send no more.  Raises `LinuxError`.
        """
        if self.inbox:
            return self.inbox.joined(size, peek=peek, one_sender=False)
        if self.finished:
            return Received()
        if self.error:
            raise LinuxError(self.take_error())
        if self.shut & RECEIVE:
            return Received()
        if self.state in {State.CLOSE, State.LISTEN}:
            raise LinuxError(ENOTCONN)
        return None

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Answer, besides what all sockets do, whether urgent data is next: never."""
        if request == _SIOCATMARK:
            memory.write(argument, bytes(4))
            return 0
        return super().control(memory, request, argument)

    # -- readiness

    def read_ready(self) -> bool:
        """Return whether receiving, or accepting, would not wait."""
        return self.state is State.CLOSE or super().read_ready()

    def events(self) -> int:
        """Return what poll says (tcp_poll)."""
        if self.state is State.LISTEN:
            return READABLE if self.waiting else 0
        events = POLLERR if self.error else 0
        if self.shut == _BOTH or self.state is State.CLOSE:
            events |= POLLHUP
        if self.shut & RECEIVE:
            events |= POLLRDHUP | READABLE
        if self.state is State.SYN_SENT:
            return events
        if len(self.inbox):
            events |= READABLE
        if self.shut & SEND or self._has_space():
            events |= WRITABLE
        else:
            self.wants_space = True
        return events
