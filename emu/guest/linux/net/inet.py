"""Sockets of the Internet protocols (AF_INET, AF_INET6): what TCP and UDP have in common.

Nothing here knows the host's network: every packet stays in the guest.  Source: Linux
net/ipv4/af_inet.c, net/ipv6/af_inet6.c.
"""

from __future__ import annotations

from typing import Any

from emu.guest.linux.errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENETUNREACH, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.addresses import ANY6, Endpoint, Form, is_any, is_local, is_v4, own_address, route
from emu.guest.linux.net.ports import FIRST_UNPRIVILEGED, Ports
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.net.sock import SO_REUSEADDR, SO_REUSEPORT, SOL_SOCKET, Kind
from emu.guest.linux.net.unix import Socket


class Destination(Socket):
    """An address that a datagram is sent to: the socket that has it then receives the datagram."""

    def __init__(self, inode: Inode, form: Form, endpoint: Endpoint, memory: FileMemory) -> None:
        super().__init__(inode, 0, "", Kind.DGRAM, Credentials(0, 0, 0), memory)
        self.family = form.family
        self.endpoint = endpoint


class InetSocket(Socket):
    """A socket with an address and a port."""

    def __init__(
        self,
        inode: Inode,
        flags: int,
        path: str,
        kind: Kind,
        credentials: Credentials,
        memory: FileMemory,
        form: Form,
        ports: Ports[Any],
    ) -> None:
        super().__init__(inode, flags, path, kind, credentials, memory)
        self.family = form.family
        self.ports = ports
        self.form = form
        self.uid = credentials.uid
        self.local = Endpoint(form.any)
        self.remote: Endpoint | None = None
        self.only_v6 = False
        """Whether it has nothing to do with IPv4 (IPV6_V6ONLY)."""
        self.bound_host = form.any
        """The address that `bind` gave it, and to which it returns."""
        self.has_port = False
        """Whether the port of `local` is its own still."""
        self.keeps_port = False
        """Whether `bind` gave it the port, so it keeps that until it is closed."""

    # -- what its ports ask

    @property
    def shares_address(self) -> bool:
        """Whether others with SO_REUSEADDR may have its address, as it may have theirs."""
        return bool(self.options.others.get((SOL_SOCKET, SO_REUSEADDR)))

    @property
    def shares_port(self) -> bool:
        """Whether others with SO_REUSEPORT may have its port."""
        return bool(self.options.others.get((SOL_SOCKET, SO_REUSEPORT)))

    # -- addresses

    def packed(self, name: bytes) -> bytes:
        """Return a sender's address, which it knows as a struct sockaddr."""
        return name

    def own_address(self) -> bytes:
        """Return its struct sockaddr."""
        return self.form.pack(self.local)

    def peer_address(self) -> bytes | None:
        """Return the struct sockaddr of the other end; None: it is not connected."""
        return None if self.remote is None else self.form.pack(self.remote)

    def accepted_from(self) -> bytes:
        """Return the struct sockaddr of the other end, which may have ended the connection."""
        return b"" if self.remote is None else self.form.pack(self.remote)

    @property
    def can_bind(self) -> bool:
        """Whether it has no port yet, and is not connected."""
        return not self.has_port

    def bind_to(self, wanted: Endpoint, *, privileged: bool) -> None:
        """Take an address and a port; port 0 means the next free one.

        Raises `LinuxError`: EADDRNOTAVAIL, EACCES, EINVAL, EADDRINUSE.
        """
        if self.only_v6 and is_v4(wanted.host):
            raise LinuxError(EINVAL)
        if not is_any(wanted.host) and not is_local(wanted.host):
            raise LinuxError(EADDRNOTAVAIL)
        if 0 < wanted.port < FIRST_UNPRIVILEGED and not privileged:
            raise LinuxError(EACCES)
        if not self.can_bind:
            raise LinuxError(EINVAL)
        if wanted.port and self.ports.conflict(self, wanted):
            raise LinuxError(EADDRINUSE)
        self.settle(wanted, EADDRINUSE)
        self.bound_host, self.keeps_port = wanted.host, wanted.port != 0

    def settle(self, wanted: Endpoint, none_left: int) -> None:
        """Take an address; without a port, the next free one.  Raises `LinuxError` `none_left`."""
        port = wanted.port or self.ports.free()
        if not port:
            raise LinuxError(none_left)
        self.give_port_back()
        self.local = Endpoint(wanted.host, port)
        self.ports.add(self)
        self.has_port = True

    def give_port_back(self) -> None:
        """Release its port; `local` tells it still."""
        self.ports.remove(self)
        self.has_port = False

    @property
    def port(self) -> int:
        """Its port; 0: it has none."""
        return self.local.port if self.has_port else 0

    def route(self, host: bytes) -> bytes:
        """Return the address that is reached at `host`.  Raises `LinuxError` ENETUNREACH."""
        if is_v4(host):
            if self.only_v6:
                raise LinuxError(ENETUNREACH)
        elif is_v4(self.local.host):
            raise LinuxError(ENETUNREACH)
        elif host == ANY6 and is_v4(self.bound_host):
            host = self.bound_host
        return route(host)

    def source(self, host: bytes) -> bytes:
        """Return the address from which it sends to another."""
        return own_address(host) if is_any(self.local.host) else self.local.host

    def forget_address(self) -> None:
        """Return to the address and the port that `bind` gave it: it was disconnected."""
        self.remote = None
        self.give_port_back()
        self.local = Endpoint(self.bound_host, self.local.port)
        if self.keeps_port:
            self.ports.add(self)
            self.has_port = True
