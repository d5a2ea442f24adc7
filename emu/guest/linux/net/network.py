"""The network of a guest: the ports of TCP and UDP, and the addresses that datagrams go to."""

from __future__ import annotations

from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net.addresses import Endpoint, Form
from emu.guest.linux.net.inet import Destination
from emu.guest.linux.net.ports import Ports
from emu.guest.linux.net.tcp import TcpSocket
from emu.guest.linux.net.udp import UdpSocket


class Network:
    """The network of one guest."""

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
