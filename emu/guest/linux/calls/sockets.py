"""System calls of sockets: making, naming and connecting them.

There is no network: of the address families there are AF_UNIX, and AF_NETLINK, whose kernel knows
no interfaces.  Source: Linux net/socket.c, net/unix/af_unix.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import AT_FDCWD, Address, Blocking, Caller, Int, Unsigned, call
from emu.guest.linux.credentials import SEARCH, WRITE
from emu.guest.linux.directories import Directory
from emu.guest.linux.errno import (
    EADDRINUSE,
    EAFNOSUPPORT,
    EAGAIN,
    ECONNREFUSED,
    EINVAL,
    ENOTCONN,
    ENOTSOCK,
    EOPNOTSUPP,
    EPERM,
    EPROTONOSUPPORT,
    ESOCKTNOSUPPORT,
    LinuxError,
)
from emu.guest.linux.files import O_CLOEXEC, O_NONBLOCK, O_RDWR
from emu.guest.linux.inodes import Socket as SocketInode
from emu.guest.linux.netlink import AF_NETLINK, NETLINK_ROUTE, NetlinkSocket
from emu.guest.linux.process import Wait
from emu.guest.linux.socket_ends import Kind
from emu.guest.linux.socket_messages import Credentials
from emu.guest.linux.socket_names import bound
from emu.guest.linux.sockets import Socket

_AF_UNSPEC, _AF_UNIX = 0, 1
_RAW: Final = 3
_TYPE: Final = 0xF
_PATH_MAX: Final = 108
_BOTH: Final = 3


def socket_of(c: Caller, fd: int) -> Socket:
    """Return the socket of a descriptor.  Raises `LinuxError`: EBADF, ENOTSOCK."""
    file = c.file(fd)
    if not isinstance(file, Socket):
        raise LinuxError(ENOTSOCK)
    return file


def credentials_of(c: Caller) -> Credentials:
    """Return who the calling process is."""
    known = c.process.credentials
    return Credentials(c.process.pid, known.user.effective, known.group.effective)


def _new(c: Caller, kind: Kind, flags: int) -> Socket:
    inode = SocketInode(0o777, c.kernel.wall())
    number = c.kernel.numbered(inode).number
    return Socket(
        inode, O_RDWR | flags & O_NONBLOCK, f"socket:[{number}]", kind, credentials_of(c), c.kernel.file_memory
    )


def _kind(family: int, kind: int, protocol: int) -> Kind:
    """Return what is asked for.

    Raises `LinuxError`: EINVAL, EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT.
    """
    if kind & ~(_TYPE | O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    if family != _AF_UNIX:
        raise LinuxError(EAFNOSUPPORT)
    if protocol not in {0, _AF_UNIX}:
        raise LinuxError(EPROTONOSUPPORT)
    kind &= _TYPE
    try:
        return Kind.DGRAM if kind == _RAW else Kind(kind)
    except ValueError:
        raise LinuxError(ESOCKTNOSUPPORT) from None


def _netlink(c: Caller, kind: int, protocol: int) -> NetlinkSocket:
    """Make a socket to the kernel.

    Raises `LinuxError`: EINVAL, ESOCKTNOSUPPORT, EPROTONOSUPPORT.
    """
    if kind & ~(_TYPE | O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    if kind & _TYPE not in {_RAW, Kind.DGRAM}:
        raise LinuxError(ESOCKTNOSUPPORT)
    if protocol != NETLINK_ROUTE:
        raise LinuxError(EPROTONOSUPPORT)
    inode = SocketInode(0o777, c.kernel.wall())
    path = f"socket:[{c.kernel.numbered(inode).number}]"
    flags, kernel = O_RDWR | kind & O_NONBLOCK, c.kernel
    return NetlinkSocket(inode, flags, path, kind & _TYPE, credentials_of(c), kernel.file_memory, kernel.netlink_ports)


@call("socket")
def socket(c: Caller, family: Int, kind: Int, protocol: Int) -> int:
    """Make a socket."""
    made = _netlink(c, kind, protocol) if family == AF_NETLINK else _new(c, _kind(family, kind, protocol), kind)
    return c.process.files.add(made, close_on_exec=bool(kind & O_CLOEXEC))


@call("socketpair")
def socketpair(c: Caller, family: Int, kind: Int, protocol: Int, fds: Address) -> int:
    """Make two sockets that are connected."""
    what = _kind(family, kind, protocol)
    first, second = _new(c, what, kind), _new(c, what, kind)
    first.pair(second)
    close, files = bool(kind & O_CLOEXEC), c.process.files
    numbers = [files.add(first, close_on_exec=close)]
    try:
        numbers.append(files.add(second, close_on_exec=close))
        c.write(fds, struct.pack("<ii", *numbers))
    except Exception:
        for number in numbers:
            files.close(number)
        raise
    return 0


# -- addresses


def read_address(c: Caller, address: int, size: int) -> bytes | None:
    """Read a struct sockaddr_un: its name; b"" if it has none; None for AF_UNSPEC.

    Raises `LinuxError` EINVAL.
    """
    if not 2 <= size <= 2 + _PATH_MAX:
        raise LinuxError(EINVAL)
    data = c.read(address, size)
    family = int.from_bytes(data[:2], "little")
    if family == _AF_UNSPEC:
        return None
    if family != _AF_UNIX:
        raise LinuxError(EINVAL)
    name = data[2:]
    return name if name[:1] == b"\0" else name.split(b"\0", 1)[0]


def packed_address(one: Socket, name: bytes) -> bytes:
    """Return a name that a socket knows as a struct sockaddr of its family."""
    if one.family == AF_NETLINK:
        return name
    end = b"\0" if name and name[:1] != b"\0" else b""
    return struct.pack("<H", _AF_UNIX) + name + end


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


def find(c: Caller, name: bytes) -> Socket:
    """Return the socket of a name.

    Raises `LinuxError`: ECONNREFUSED, or what following the path raises.
    """
    if not name:
        raise LinuxError(EINVAL)
    if name[:1] == b"\0":
        found = c.kernel.addresses.abstract(name)
        if found is None:
            raise LinuxError(ECONNREFUSED)
        return found
    inode = c.inode(AT_FDCWD, name.decode("utf-8", "surrogateescape"))
    c.need(inode, WRITE)
    return bound(inode)


@call("bind")
def bind(c: Caller, fd: Int, address: Address, size: Int) -> int:
    """Give a socket a name."""
    one = socket_of(c, fd)
    if isinstance(one, NetlinkSocket):
        one.bind_to(c.read(address, max(0, min(size, 2 + _PATH_MAX))))
        return 0
    name = read_address(c, address, size)
    if name is None or (one.name and name[:1] in {b"", b"\0"}):
        raise LinuxError(EINVAL)
    addresses = c.kernel.addresses
    if not name:
        addresses.bind_any(one)
    elif name[:1] == b"\0":
        if not addresses.bind_abstract(name, one):
            raise LinuxError(EADDRINUSE)
    else:
        _bind_path(c, one, name)
    return 0


def _bind_path(c: Caller, one: Socket, name: bytes) -> None:
    place = c.place(AT_FDCWD, name.decode("utf-8", "surrogateescape"), follow=False)
    if place.inode is not None or not place.name:
        raise LinuxError(EADDRINUSE)
    if type(place.directory) is not Directory:
        raise LinuxError(EPERM)
    if one.name:
        raise LinuxError(EINVAL)
    inode = SocketInode(0o777 & ~c.process.surroundings.umask, c.kernel.wall())
    c.need(place.directory, WRITE | SEARCH)
    c.process.credentials.give(inode, place.directory)
    place.directory.add(place.name, inode)
    inode.socket, one.name = one, name

    def unbind() -> None:
        inode.socket = None

    one.unbind = unbind


@call("getsockname")
def getsockname(c: Caller, fd: Int, to: Address, size_at: Address) -> int:
    """Report a socket's name."""
    one = socket_of(c, fd)
    write_address(c, packed_address(one, one.name), to, size_at)
    return 0


@call("getpeername")
def getpeername(c: Caller, fd: Int, to: Address, size_at: Address) -> int:
    """Report the name of the other end."""
    one = socket_of(c, fd)
    if one.peer is None or not one.connected:
        raise LinuxError(ENOTCONN)
    write_address(c, packed_address(one, one.peer.name), to, size_at)
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
    if isinstance(one, NetlinkSocket):
        one.check_target(c.read(address, max(0, min(size, 2 + _PATH_MAX))))
        return 0
    name = read_address(c, address, size)
    if one.kind is Kind.DGRAM:
        one.connect_datagrams(None if name is None else find(c, name))
        return 0
    if name is None:
        raise LinuxError(EINVAL)
    while True:
        other = find(c, name)
        one.check_connect(other)
        if other.accepts():
            break
        if one.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        yield Wait(other.accepts, until(c, one.options.send_timeout))
    one.connect(other, _new(c, one.kind, 0), credentials_of(c))
    return 0


def until(c: Caller, timeout: int | None) -> int | None:
    """Return when a wait of `timeout` nanoseconds is over; None: never."""
    return None if timeout is None else c.now() + timeout


def _accept(c: Caller, fd: int, to: int, size_at: int, flags: int) -> Blocking:
    one = socket_of(c, fd)
    if flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    if one.kind is Kind.DGRAM:
        raise LinuxError(EOPNOTSUPP)
    if not one.listening:
        raise LinuxError(EINVAL)
    while not one.waiting:
        if one.shut:
            raise LinuxError(EINVAL)
        if one.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        if not (yield Wait(one.read_ready, until(c, one.options.receive_timeout))):
            raise LinuxError(EAGAIN)
    served = one.waiting.popleft()
    one.departures += 1
    served.flags |= flags & O_NONBLOCK
    number = c.process.files.add(served, close_on_exec=bool(flags & O_CLOEXEC))
    if served.peer is not None:
        write_address(c, packed_address(one, served.peer.name), to, size_at)
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
