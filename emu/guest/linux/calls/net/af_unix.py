"""The sockets of AF_UNIX: abstract names, and names in the file system.

Source: Linux net/unix/af_unix.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.net.families import (
    AF_UNSPEC,
    FAMILIES,
    SOCK_RAW,
    Family,
    credentials_of,
    new_file,
    number_in,
    until,
)
from emu.guest.linux.calls.table import AT_FDCWD, Blocking, Caller
from emu.guest.linux.errno import (
    EADDRINUSE,
    EAGAIN,
    ECONNREFUSED,
    EINVAL,
    EPERM,
    EPROTONOSUPPORT,
    ESOCKTNOSUPPORT,
    LinuxError,
)
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Socket as SocketInode
from emu.guest.linux.fs.open_file import O_NONBLOCK, O_RDWR
from emu.guest.linux.net.names import bound
from emu.guest.linux.net.sock import Kind
from emu.guest.linux.net.unix import Socket
from emu.guest.linux.process.cred import SEARCH, WRITE
from emu.guest.linux.process.process import Wait

AF_UNIX: Final = 1
_PATH_MAX: Final = 108


def _new(c: Caller, kind: Kind, flags: int) -> Socket:
    inode, path, memory = new_file(c.kernel)
    return Socket(inode, flags, path, kind, credentials_of(c), memory)


def _kind(kind: int, protocol: int) -> Kind:
    if protocol not in {0, AF_UNIX}:
        raise LinuxError(EPROTONOSUPPORT)
    try:
        return Kind.DGRAM if kind == SOCK_RAW else Kind(kind)
    except ValueError:
        raise LinuxError(ESOCKTNOSUPPORT) from None


def _name(address: bytes) -> bytes:
    """Return the name in a struct sockaddr_un; b"": it has none.  Raises `LinuxError` EINVAL."""
    if number_in(address) != AF_UNIX or len(address) > 2 + _PATH_MAX:
        raise LinuxError(EINVAL)
    name = address[2:]
    return name if name[:1] == b"\0" else name.split(b"\0", 1)[0]


class Unix(Family):
    """AF_UNIX."""

    def make(self, c: Caller, kind: int, protocol: int, flags: int) -> Socket:
        """Make a socket.  Raises `LinuxError`: EPROTONOSUPPORT, ESOCKTNOSUPPORT."""
        return _new(c, _kind(kind, protocol), flags)

    def pair(self, c: Caller, kind: int, protocol: int, flags: int) -> tuple[Socket, Socket]:
        """Make two sockets that are connected."""
        first, second = self.make(c, kind, protocol, flags), self.make(c, kind, protocol, flags)
        first.pair(second)
        return first, second

    def bind(self, c: Caller, one: Socket, address: bytes) -> None:
        """Give a socket a name.  Raises `LinuxError`: EINVAL, EADDRINUSE, ..."""
        name = _name(address)
        if one.name and name[:1] in {b"", b"\0"}:
            raise LinuxError(EINVAL)
        addresses = c.kernel.addresses
        if not name:
            addresses.bind_any(one)
        elif name[:1] == b"\0":
            if not addresses.bind_abstract(name, one):
                raise LinuxError(EADDRINUSE)
        else:
            _bind_path(c, one, name)

    def connect(self, c: Caller, one: Socket, address: bytes) -> Blocking:
        """Connect a socket to a name; AF_UNSPEC ends what connects datagrams."""
        unspecified = number_in(address) == AF_UNSPEC
        if one.kind is Kind.DGRAM:
            one.connect_datagrams(None if unspecified else self.find(c, address))
            return 0
        while True:
            other = self.find(c, address)
            one.check_connect(other)
            if other.accepts():
                break
            if one.flags & O_NONBLOCK:
                raise LinuxError(EAGAIN)
            yield Wait(other.accepts, until(c, one.options.send_timeout))
        one.connect(other, _new(c, one.kind, O_RDWR), credentials_of(c))
        return 0

    def find(self, c: Caller, address: bytes) -> Socket:
        """Return the socket of a name.

        Raises `LinuxError`: EINVAL, ECONNREFUSED, or what following the path raises.
        """
        name = _name(address)
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


def _bind_path(c: Caller, one: Socket, name: bytes) -> None:
    dentry = c.dentry(AT_FDCWD, name.decode("utf-8", "surrogateescape"), follow=False)
    if dentry.inode is not None or not dentry.name:
        raise LinuxError(EADDRINUSE)
    if type(dentry.directory) is not Directory:
        raise LinuxError(EPERM)
    if one.name:
        raise LinuxError(EINVAL)
    inode = SocketInode(0o777 & ~c.process.surroundings.umask, c.kernel.wall())
    c.need(dentry.directory, WRITE | SEARCH)
    c.process.credentials.give(inode, dentry.directory)
    dentry.directory.add(dentry.name, inode)
    inode.socket, one.name = one, name

    def unbind() -> None:
        inode.socket = None

    one.unbind = unbind


FAMILIES[AF_UNIX] = Unix()
