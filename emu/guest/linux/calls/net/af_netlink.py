"""The sockets of AF_NETLINK.  Source: Linux net/netlink/af_netlink.c."""

from __future__ import annotations

from emu.guest.linux.calls.net.families import FAMILIES, SOCK_RAW, Family, credentials_of, new_file
from emu.guest.linux.calls.table import Blocking, Caller
from emu.guest.linux.errno import EPROTONOSUPPORT, ESOCKTNOSUPPORT, LinuxError
from emu.guest.linux.net.netlink import AF_NETLINK, NETLINK_ROUTE, NetlinkSocket
from emu.guest.linux.net.sock import Kind
from emu.guest.linux.net.unix import Socket


class Netlink(Family):
    """AF_NETLINK."""

    def make(self, c: Caller, kind: int, protocol: int, flags: int) -> Socket:
        """Make a socket to the kernel.  Raises `LinuxError`: ESOCKTNOSUPPORT, EPROTONOSUPPORT."""
        if kind not in {SOCK_RAW, Kind.DGRAM}:
            raise LinuxError(ESOCKTNOSUPPORT)
        if protocol != NETLINK_ROUTE:
            raise LinuxError(EPROTONOSUPPORT)
        inode, path, memory = new_file(c.kernel)
        return NetlinkSocket(inode, flags, path, kind, credentials_of(c), memory, c.kernel.netlink_ports)

    def bind(self, c: Caller, one: Socket, address: bytes) -> None:
        """Give a socket a port."""
        del c
        assert isinstance(one, NetlinkSocket)
        one.bind_to(address)

    def connect(self, c: Caller, one: Socket, address: bytes) -> Blocking:
        """Check that the address is the kernel's."""
        del c
        assert isinstance(one, NetlinkSocket)
        one.check_target(address)
        return 0
        yield


FAMILIES[AF_NETLINK] = Netlink()
