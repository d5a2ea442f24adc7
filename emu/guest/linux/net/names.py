"""The names of sockets: abstract names, inodes of the file system, and ports of the network.

Source: Linux net/unix/af_unix.c.
"""

from __future__ import annotations

from emu.guest.linux.errno import ECONNREFUSED, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.inode import Socket as SocketInode
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.addresses import Endpoint, Form
from emu.guest.linux.net.inet import Destination
from emu.guest.linux.net.ports import Ports
from emu.guest.linux.net.tcp import TcpSocket
from emu.guest.linux.net.udp import UdpSocket
from emu.guest.linux.net.unix import Socket


class Addresses:
    """The names of the guest's sockets that are not in the file system."""

    def __init__(self) -> None:
        self.network = Network()
        self._abstract: dict[bytes, Socket] = {}
        self._next = 1

    def bind_abstract(self, name: bytes, socket: Socket) -> bool:
        """Give a socket an abstract name; return whether it was free."""
        if name in self._abstract:
            return False
        self._abstract[name] = socket
        socket.name = name
        socket.unbind = lambda: self._abstract.pop(name, None)
        return True

    def bind_any(self, socket: Socket) -> None:
        """Give a socket the next abstract name of five hexadecimal digits."""
        while not self.bind_abstract(b"\0%05x" % self._next, socket):
            self._next += 1
        self._next += 1

    def abstract(self, name: bytes) -> Socket | None:
        """Return the socket of an abstract name."""
        return self._abstract.get(name)


def bound(inode: Inode) -> Socket:
    """Return the socket that is bound to an inode.  Raises `LinuxError` ECONNREFUSED."""
    if not isinstance(inode, SocketInode) or not isinstance(inode.socket, Socket):
        raise LinuxError(ECONNREFUSED)
    return inode.socket


class Network:
    """The network of one guest: the ports of TCP and UDP, and the targets of datagrams."""

    def __init__(self) -> None:
        self.tcp: Ports[TcpSocket] = Ports()
        self.udp: Ports[UdpSocket] = Ports()
        self._destinations: dict[tuple[int, Endpoint], Destination] = {}

    def destination(self, form: Form, endpoint: Endpoint, memory: FileMemory) -> Destination:
        """Return an address as the target of datagrams."""
        key = form.family, endpoint
        if key not in self._destinations:
            self._destinations[key] = Destination(Inode(0), form, endpoint, memory)
        return self._destinations[key]
