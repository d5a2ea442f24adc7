"""System calls of sockets: making, naming and connecting them.

The families (`FAMILIES`) say what each call does with an address.  Source: Linux net/socket.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.net import af_inet, af_netlink, af_unix
from emu.guest.linux.calls.net.families import (
    AF_UNSPEC,
    FAMILIES,
    credentials_of,
    family,
    kind_and_flags,
    number_in,
    read_bytes,
    until,
)
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EAGAIN, EINVAL, ENOTCONN, ENOTSOCK, EOPNOTSUPP, LinuxError
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_NONBLOCK
from emu.guest.linux.net.sock import Kind
from emu.guest.linux.net.unix import Socket
from emu.guest.linux.process.process import Wait

# The modules of the families are named here because importing them fills the table of families.
__all__ = [
    "af_inet",
    "af_netlink",
    "af_unix",
    "credentials_of",
    "find",
    "packed_address",
    "read_address",
    "socket_of",
    "until",
    "write_address",
]

_BOTH: Final = 3


def socket_of(c: Caller, fd: int) -> Socket:
    """Return the socket of a descriptor.  Raises `LinuxError`: EBADF, ENOTSOCK."""
    file = c.file(fd)
    if not isinstance(file, Socket):
        raise LinuxError(ENOTSOCK)
    return file


@call("socket")
def socket(c: Caller, number: Int, kind: Int, protocol: Int) -> int:
    """Make a socket."""
    what, flags = kind_and_flags(kind)
    made = family(number).make(c, what, protocol, flags)
    return c.process.files.add(made, close_on_exec=bool(kind & O_CLOEXEC))


@call("socketpair")
def socketpair(c: Caller, number: Int, kind: Int, protocol: Int, fds: Address) -> int:
    """Make two sockets that are connected."""
    what, flags = kind_and_flags(kind)
    first, second = family(number).pair(c, what, protocol, flags)
    close, files = bool(kind & O_CLOEXEC), c.process.files
    numbers = [files.add(first, close_on_exec=close)]
    try:
        numbers.append(files.add(second, close_on_exec=close))
        c.write(fds, struct.pack("<ii", *numbers))
    except Exception:
        for one in numbers:
            files.close(one)
        raise
    return 0


# -- addresses


def read_address(c: Caller, address: int, size: int) -> bytes | None:
    """Read the address of a message: a struct sockaddr; None for AF_UNSPEC.

    Raises `LinuxError` EINVAL.
    """
    data = read_bytes(c, address, size)
    return None if number_in(data) == AF_UNSPEC else data


def find(c: Caller, address: bytes) -> Socket:
    """Return the socket to which messages for an address go.

    Raises `LinuxError`: EINVAL, or that of the family.
    """
    known = FAMILIES.get(number_in(address))
    if known is None:
        raise LinuxError(EINVAL)
    return known.find(c, address)


def packed_address(one: Socket, name: bytes) -> bytes:
    """Return a name that a socket knows as a struct sockaddr of its family."""
    return one.packed(name)


def write_address(c: Caller, data: bytes, to: int, size_at: int) -> None:
    """Write an address, truncated to the given size, and its real size.

    Raises `LinuxError` EINVAL.
    """
    if not to or not size_at:
        return
    size = c.number(size_at, 4, signed=True)
    if size < 0:
        raise LinuxError(EINVAL)
    c.write(to, data[:size])
    c.write(size_at, struct.pack("<i", len(data)))


@call("bind")
def bind(c: Caller, fd: Int, address: Address, size: Int) -> int:
    """Give a socket a name."""
    one = socket_of(c, fd)
    family(one.family).bind(c, one, read_bytes(c, address, size))
    return 0


@call("getsockname")
def getsockname(c: Caller, fd: Int, to: Address, size_at: Address) -> int:
    """Report a socket's name."""
    one = socket_of(c, fd)
    write_address(c, one.own_address(), to, size_at)
    return 0


@call("getpeername")
def getpeername(c: Caller, fd: Int, to: Address, size_at: Address) -> int:
    """Report the name of the other end."""
    one = socket_of(c, fd)
    address = one.peer_address()
    if address is None:
        raise LinuxError(ENOTCONN)
    write_address(c, address, to, size_at)
    return 0


# -- connections


@call("listen")
def listen(c: Caller, fd: Int, backlog: Int) -> int:
    """Take connections."""
    socket_of(c, fd).listen(backlog, credentials_of(c))
    return 0


@call("connect")
def connect(c: Caller, fd: Int, address: Address, size: Int) -> Blocking:
    """Connect a socket to a name."""
    one = socket_of(c, fd)
    return (yield from family(one.family).connect(c, one, read_bytes(c, address, size)))


def _accept(c: Caller, fd: int, to: int, size_at: int, flags: int) -> Blocking:
    one = socket_of(c, fd)
    if flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    if one.kind is Kind.DGRAM:
        raise LinuxError(EOPNOTSUPP)
    while not one.waiting:
        if not one.listening or one.shut:
            raise LinuxError(EINVAL)
        if one.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        if not (yield Wait(one.read_ready, until(c, one.options.receive_timeout))):
            raise LinuxError(EAGAIN)
    served = one.take_connection()
    served.flags |= flags & O_NONBLOCK
    number = c.process.files.add(served, close_on_exec=bool(flags & O_CLOEXEC))
    write_address(c, served.accepted_from(), to, size_at)
    return number


@call("accept4")
def accept4(c: Caller, fd: Int, to: Address, size_at: Address, flags: Unsigned) -> Blocking:
    """Take a connection."""
    return (yield from _accept(c, fd, to, size_at, flags))


@call("accept")
def accept(c: Caller, fd: Int, to: Address, size_at: Address) -> Blocking:
    """Take a connection."""
    return (yield from _accept(c, fd, to, size_at, 0))


@call("shutdown")
def shutdown(c: Caller, fd: Int, how: Int) -> int:
    """Shut down receiving, sending, or both."""
    one = socket_of(c, fd)
    if not 0 <= how < _BOTH:
        raise LinuxError(EINVAL)
    one.shut_down(how + 1)
    return 0
