"""The names of sockets: abstract names, inodes of the file system, and a network's addresses.

Source: Linux net/unix/af_unix.c.
"""

from __future__ import annotations

from emu.guest.linux.errno import ECONNREFUSED, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.inode import Socket as SocketInode
from emu.guest.linux.net.network import Network
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
