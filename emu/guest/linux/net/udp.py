"""Sockets of UDP over the loopback.

A datagram arrives as soon as it is sent, or is lost if its receiver's buffer is full.

Source: Linux net/ipv4/udp.c, net/ipv6/udp.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.guest.linux.errno import (
    EAFNOSUPPORT,
    EAGAIN,
    ECONNREFUSED,
    EDESTADDRREQ,
    EINVAL,
    EMSGSIZE,
    ENOTCONN,
    EOPNOTSUPP,
    EPIPE,
    LinuxError,
)
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.addresses import AF_INET, Endpoint, Form, is_v4
from emu.guest.linux.net.inet import Destination, InetSocket
from emu.guest.linux.net.ports import Ports
from emu.guest.linux.net.skb import Credentials, Message, Received, memory_of
from emu.guest.linux.net.sock import RECEIVE, SEND, Kind, SocketEnd

# The largest datagrams of IPv4 and IPv6: 64 KiB without the headers that count.
_LARGEST4, _LARGEST6 = 65_507, 65_527
_SOL_IP, _SOL_IPV6 = 0, 41
_RECVERR, _IPV6_RECVERR = 11, 25


class UdpSocket(InetSocket):
    """A socket of UDP."""

    protocol = 17

    def __init__(
        self,
        inode: Inode,
        flags: int,
        path: str,
        credentials: Credentials,
        memory: FileMemory,
        form: Form,
        ports: Ports[UdpSocket],
    ) -> None:
        super().__init__(inode, flags, path, Kind.DGRAM, credentials, memory, form, ports)
        self.ports: Ports[UdpSocket] = ports

    def listen(self, backlog: int, credentials: Credentials) -> None:  # noqa: ARG002  it takes none
        """Refuse.  Raises `LinuxError` EOPNOTSUPP."""
        raise LinuxError(EOPNOTSUPP)

    def begin(self, to: Endpoint) -> None:
        """Send to an address from now on, and receive only from it.

        Raises `LinuxError`: ENETUNREACH, EAGAIN.
        """
        host = self.route(to.host)
        self.settle(Endpoint(self.source(host), self.port), EAGAIN)
        self.remote = Endpoint(host, to.port)
        self.connected = True

    def disconnect(self) -> None:
        """Send to any address, and receive from all."""
        self.connected = False
        self.forget_address()
        if not self.has_port:
            self.local = Endpoint(self.local.host)

    def shut_down(self, directions: int) -> None:
        """Shut down receiving (1), sending (2), or both (3).  Raises `LinuxError` ENOTCONN."""
        self.shut |= directions
        self.wake()
        if not self.connected:
            raise LinuxError(ENOTCONN)

    def closed(self) -> None:
        """Give the port back."""
        self.dead = True
        self.ports.remove(self)
        self.inbox.drop()

    # -- sending

    def send(self, data: bytes, credentials: Credentials, *, files: Sequence[OpenFile] = (), to: SocketEnd | None = None
             ) -> int:  # fmt: skip
        """Send a datagram, and return its size: it never waits.

        Raises `LinuxError`: EMSGSIZE, EDESTADDRREQ, EINVAL, ENETUNREACH, EPIPE, ...
        """
        del files
        if not self.has_port:
            self.settle(self.local, EAGAIN)
        target = self._target(to)
        if not target.port:
            raise LinuxError(EINVAL)
        target = Endpoint(self.route(target.host), target.port)
        if len(data) > (_LARGEST4 if is_v4(target.host) else _LARGEST6):
            raise LinuxError(EMSGSIZE)
        if self.error:
            raise LinuxError(self.take_error())
        if self.shut & SEND:
            raise LinuxError(EPIPE)
        source = Endpoint(self.source(target.host), self.local.port)
        receiver = self.ports.receiver(target, source, lambda _other: True)
        if receiver is not None:
            receiver.arrive(data, source, credentials)
        elif self.remote == target or self._hears_errors():
            self.error = ECONNREFUSED
            self.wake()
        return len(data)

    def _target(self, to: SocketEnd | None) -> Endpoint:
        if to is None:
            if self.remote is None:
                raise LinuxError(EDESTADDRREQ)
            return self.remote
        if not isinstance(to, Destination) or self.family == AF_INET != to.family:
            raise LinuxError(EAFNOSUPPORT)
        return to.endpoint

    def _hears_errors(self) -> bool:
        """Return whether it hears of unreachable ports though it is not connected."""
        others = self.options.others
        return not self.connected and bool(others.get((_SOL_IP, _RECVERR)) or others.get((_SOL_IPV6, _IPV6_RECVERR)))

    def arrive(self, data: bytes, source: Endpoint, credentials: Credentials) -> None:
        """Receive a datagram, or lose it if the buffer is full."""
        if self.inbox.memory_used > self.receive_buffer:
            return
        memory = memory_of(len(data), stream=False)
        self.inbox.put(Message(data, self.form.pack(source), credentials, lambda _size: None, memory))
        self.arrivals += 1
        self.note(input=True)

    def can_send(self, target: SocketEnd) -> bool:  # noqa: ARG002  a datagram is lost rather than wait
        """Return whether sending would not wait: it never does."""
        return True

    def _has_space(self) -> bool:
        return True

    # -- receiving

    def receive(self, size: int, *, peek: bool = False) -> Received | None:
        """Return the next datagram, up to `size` bytes; None: nothing yet.

        Raises `LinuxError`: an error that a datagram has met is told first.
        """
        if self.error:
            raise LinuxError(self.take_error())
        if self.inbox:
            return self.inbox.next_message(size, peek=peek)
        return Received() if self.shut & RECEIVE else None
