"""The families of sockets: for each, how sockets are made and how their addresses are used.

A family is an object in the table `FAMILIES`.  Its module enters it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from emu.guest.linux.calls.table import Blocking, Caller
from emu.guest.linux.errno import EAFNOSUPPORT, EINVAL, EOPNOTSUPP, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.inode import Socket as SocketInode
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_NONBLOCK, O_RDWR
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.kernel import Kernel
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.net.unix import Socket

AF_UNSPEC: Final = 0
SOCK_RAW: Final = 3
_TYPE: Final = 0xF
# The largest address (struct sockaddr_storage).
_ADDRESS_MAX: Final = 128


class Family(ABC):
    """A family of addresses.  Each method raises `LinuxError`."""

    @abstractmethod
    def make(self, c: Caller, kind: int, protocol: int, flags: int) -> Socket:
        """Make a socket of a kind (SOCK_*); `flags` are those of the open file."""

    def pair(self, c: Caller, kind: int, protocol: int, flags: int) -> tuple[Socket, Socket]:  # noqa: ARG002
        """Make two sockets that are connected."""
        raise LinuxError(EOPNOTSUPP)

    @abstractmethod
    def bind(self, c: Caller, one: Socket, address: bytes) -> None:
        """Give a socket an address."""

    @abstractmethod
    def connect(self, c: Caller, one: Socket, address: bytes) -> Blocking:
        """Connect a socket to an address."""

    def find(self, c: Caller, address: bytes) -> Socket:  # noqa: ARG002  most families have no such addresses
        """Return the socket to which messages for an address go."""
        raise LinuxError(EINVAL)


FAMILIES: Final[dict[int, Family]] = {}


def family(number: int) -> Family:
    """Return a family by its number.  Raises `LinuxError` EAFNOSUPPORT."""
    if number not in FAMILIES:
        raise LinuxError(EAFNOSUPPORT)
    return FAMILIES[number]


def credentials_of(c: Caller) -> Credentials:
    """Return who the calling process is."""
    known = c.process.credentials
    return Credentials(c.process.pid, known.user.effective, known.group.effective)


def kind_and_flags(kind: int) -> tuple[int, int]:
    """Return the kind of a socket and the flags of its open file.  Raises `LinuxError` EINVAL."""
    if kind & ~(_TYPE | O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    return kind & _TYPE, O_RDWR | kind & O_NONBLOCK


def new_file(kernel: Kernel) -> tuple[Inode, str, FileMemory]:
    """Return a socket's inode, its name in /proc/PID/fd, and the memory that its messages take."""
    inode = SocketInode(0o777, kernel.wall())
    return inode, f"socket:[{kernel.numbered(inode).number}]", kernel.file_memory


def until(c: Caller, timeout: int | None) -> int | None:
    """Return when a wait of `timeout` nanoseconds is over; None: never."""
    return None if timeout is None else c.now() + timeout


def read_bytes(c: Caller, address: int, size: int) -> bytes:
    """Read an address of any family.  Raises `LinuxError` EINVAL."""
    if not 0 <= size <= _ADDRESS_MAX:
        raise LinuxError(EINVAL)
    return c.read(address, size)


def number_in(address: bytes) -> int:
    """Return the family that an address names.  Raises `LinuxError` EINVAL: it is too short."""
    if len(address) < 2:
        raise LinuxError(EINVAL)
    return int.from_bytes(address[:2], "little")
