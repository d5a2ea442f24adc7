"""Sockets to the kernel (AF_NETLINK), of the family of routes.

They tell of the loopback and its addresses (`route_answers`); requests that change something are
refused.  The kernel tells of message queues through such a socket, too (SIGEV_THREAD).

Source: Linux net/netlink/af_netlink.c, include/uapi/linux/netlink.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from emu.guest.linux.errno import EADDRINUSE, ECONNREFUSED, EINVAL, LinuxError
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.net import rtnetlink
from emu.guest.linux.net.skb import Credentials, Message, memory_of
from emu.guest.linux.net.sock import Kind, SocketEnd
from emu.guest.linux.net.unix import Socket

if TYPE_CHECKING:
    from emu.guest.linux.fs.inode import Inode
    from emu.guest.linux.fs.open_file import OpenFile

AF_NETLINK: Final = 16
NETLINK_ROUTE: Final = 0
SOL_NETLINK: Final = 270
# struct sockaddr_nl: family, port, groups.
_ADDRESS: Final = struct.Struct("<HxxII")
# struct nlmsghdr: size, type, flags, sequence, port.
_HEADER: Final = struct.Struct("<IHHII")
_ERROR, _DONE = 2, 3
# Ports of processes with more than one socket are negative (netlink_autobind).
_FIRST_OTHER_PORT: Final = (1 << 32) - 4097
# Types below it are not requests (NLMSG_MIN_TYPE).
_FIRST_TYPE: Final = 0x10
_REQUEST, _MULTIPLE, _ACK, _DUMP = 0x1, 0x2, 0x4, 0x300
_KERNEL: Final = Credentials(0, 0, 0)
_FROM_KERNEL: Final = _ADDRESS.pack(AF_NETLINK, 0, 0)


class Ports:
    """The numbers of the sockets to the kernel."""

    def __init__(self) -> None:
        self.used: set[int] = set()

    def take(self, wanted: int, *, exactly: bool) -> int:
        """Return a port and count it as used: the one that is wanted, or else another.

        Raises `LinuxError` EADDRINUSE if it is to be exactly that one.
        """
        if wanted in self.used:
            if exactly:
                raise LinuxError(EADDRINUSE)
            wanted = _FIRST_OTHER_PORT
            while wanted in self.used:
                wanted -= 1
        self.used.add(wanted)
        return wanted


class NetlinkSocket(Socket):
    """A socket to the kernel."""

    family = AF_NETLINK

    def __init__(
        self, inode: Inode, flags: int, path: str, kind: int, who: Credentials, memory: FileMemory, ports: Ports
    ) -> None:
        super().__init__(inode, flags, path, Kind.DGRAM, who, memory)
        self.type = kind
        self._ports = ports
        self._port = 0
        self._groups = 0
        self._show_name()

    def _show_name(self) -> None:
        """Set the address to `name`, a struct sockaddr_nl."""
        self.name = _ADDRESS.pack(AF_NETLINK, self._port, self._groups)

    def packed(self, name: bytes) -> bytes:
        """Return an address, which it knows as a struct sockaddr_nl."""
        return name

    def bind_to(self, address: bytes) -> None:
        """Take a port, and listen to groups, to which nothing is sent.  Raises `LinuxError` EINVAL."""
        port, groups = self._read(address)
        if self._port and port not in {0, self._port}:
            raise LinuxError(EINVAL)
        if not self._port:
            self._port = self._ports.take(port or self.credentials.pid, exactly=port != 0)
        self._groups = groups
        self._show_name()

    @staticmethod
    def _read(address: bytes) -> tuple[int, int]:
        if len(address) < _ADDRESS.size:
            raise LinuxError(EINVAL)
        family, port, groups = _ADDRESS.unpack_from(address)
        if family != AF_NETLINK:
            raise LinuxError(EINVAL)
        return port, groups

    def check_target(self, address: bytes) -> None:
        """Return if an address is the kernel's.  Raises `LinuxError`: EINVAL, ECONNREFUSED."""
        if self._read(address)[0]:
            raise LinuxError(ECONNREFUSED)

    def closed(self) -> None:
        """Give the port back."""
        self.dead = True
        if self._port:
            self._ports.used.discard(self._port)

    def _has_space(self) -> bool:
        return True

    def can_send(self, target: SocketEnd) -> bool:  # noqa: ARG002  the kernel answers at once
        """Return whether sending would not wait: it never does."""
        return True

    def send(self, data: bytes, credentials: Credentials, *, files: Sequence[OpenFile] = (), to: SocketEnd | None = None
             ) -> int:  # fmt: skip
        """Ask the kernel, which answers at once."""
        del credentials, files, to
        if not self._port:
            self.bind_to(_FROM_KERNEL)
        for answer in self._answers(data):
            self.tell(answer)
        return len(data)

    def tell(self, data: bytes) -> None:
        """Receive what the kernel sends."""
        memory = memory_of(len(data), stream=False)
        self.inbox.put(Message(data, _FROM_KERNEL, _KERNEL, lambda _size: None, memory))
        self.arrivals += 1
        self.note(input=True)

    def _answers(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at + _HEADER.size <= len(data):
            size, kind, flags, sequence, _ = _HEADER.unpack_from(data, at)
            if not _HEADER.size <= size <= len(data) - at:
                return
            head, body = data[at : at + _HEADER.size], data[at + _HEADER.size : at + size]
            at += -(-size // 4) * 4
            request = flags & _REQUEST and kind >= _FIRST_TYPE
            if request and flags & _DUMP == _DUMP:
                found = rtnetlink.dump(kind, body)
                if found:
                    yield b"".join(self._message(one.kind, _MULTIPLE, sequence, one.body) for one in found)
                yield self._message(_DONE, _MULTIPLE, sequence, bytes(4))
                continue
            error = 0
            if request:
                try:
                    answer = rtnetlink.one(kind, body)
                    yield self._message(answer.kind, 0, sequence, answer.body)
                except LinuxError as refused:
                    error = refused.number
            if error or flags & _ACK:
                yield self._message(_ERROR, 0, sequence, struct.pack("<i", -error) + head)

    def _message(self, kind: int, flags: int, sequence: int, body: bytes) -> bytes:
        body = body.ljust(-(-len(body) // 4) * 4, b"\0")
        return _HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, self._port) + body
