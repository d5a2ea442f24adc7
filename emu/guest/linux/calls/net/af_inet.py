"""The sockets of AF_INET and AF_INET6: TCP and UDP.  Source: Linux net/ipv4/af_inet.c."""

from __future__ import annotations

from functools import partial
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
from emu.guest.linux.calls.table import Blocking, Caller
from emu.guest.linux.errno import (
    EALREADY,
    EINPROGRESS,
    EPERM,
    EPROTONOSUPPORT,
    ESOCKTNOSUPPORT,
    ETIMEDOUT,
    LinuxError,
)
from emu.guest.linux.fs.open_file import O_NONBLOCK, O_RDWR
from emu.guest.linux.kernel import Kernel
from emu.guest.linux.net.addresses import FORM4, FORM6, Form
from emu.guest.linux.net.inet import InetSocket
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.net.sock import Kind
from emu.guest.linux.net.tcp import State, TcpSocket
from emu.guest.linux.net.udp import UdpSocket
from emu.guest.linux.net.unix import Socket
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Wait

# How long a blocking `connect` tries (net.ipv4.tcp_syn_retries: the sum of the waits).
_PATIENCE: Final = 127 * 1_000_000_000


def _new_tcp(kernel: Kernel, form: Form, flags: int, who: Credentials) -> TcpSocket:
    inode, path, memory = new_file(kernel)
    make = partial(_new_tcp, kernel, form, O_RDWR, who)
    return TcpSocket(inode, flags, path, who, memory, form, kernel.addresses.network.tcp, make)


def _new_udp(kernel: Kernel, form: Form, flags: int, who: Credentials) -> UdpSocket:
    inode, path, memory = new_file(kernel)
    return UdpSocket(inode, flags, path, who, memory, form, kernel.addresses.network.udp)


_MAKERS: Final = {Kind.STREAM: (TcpSocket.protocol, _new_tcp), Kind.DGRAM: (UdpSocket.protocol, _new_udp)}


class Inet(Family):
    """AF_INET or AF_INET6, by the form of its addresses."""

    def __init__(self, form: Form) -> None:
        self._form = form

    def make(self, c: Caller, kind: int, protocol: int, flags: int) -> Socket:
        """Make a socket of TCP or UDP.

        Raises `LinuxError`: ESOCKTNOSUPPORT, EPROTONOSUPPORT, EPERM (a raw socket).
        """
        if kind == SOCK_RAW and protocol:
            raise LinuxError(EPROTONOSUPPORT if c.process.credentials.can(Capability.NET_RAW) else EPERM)
        if kind not in _MAKERS:
            raise LinuxError(EPROTONOSUPPORT if kind == SOCK_RAW else ESOCKTNOSUPPORT)
        known, maker = _MAKERS[Kind(kind)]
        if protocol not in {0, known}:
            raise LinuxError(EPROTONOSUPPORT)
        return maker(c.kernel, self._form, flags, credentials_of(c))

    def bind(self, c: Caller, one: Socket, address: bytes) -> None:
        """Give a socket an address and a port."""
        assert isinstance(one, InetSocket)
        privileged = c.process.credentials.can(Capability.NET_BIND_SERVICE)
        one.bind_to(self._form.read_to_bind(address), privileged=privileged)

    def connect(self, c: Caller, one: Socket, address: bytes) -> Blocking:
        """Connect a socket to an address; AF_UNSPEC ends the connection."""
        assert isinstance(one, (TcpSocket, UdpSocket))
        if number_in(address) == AF_UNSPEC:
            one.disconnect()
        elif isinstance(one, UdpSocket):
            one.begin(self._form.read(address))
        else:
            yield from self._connect(c, one, address)
        return 0

    def _connect(self, c: Caller, one: TcpSocket, address: bytes) -> Blocking:
        """Make a connection.

        As on Linux, one that does not wait hears the result later, even if it is known.
        """
        goes_on = one.reports_connection
        if not goes_on:
            one.begin(self._form.read(address))
        if one.flags & O_NONBLOCK and (not goes_on or one.state is State.SYN_SENT):
            raise LinuxError(EALREADY if goes_on else EINPROGRESS)
        timeout = one.options.send_timeout
        while one.state is State.SYN_SENT:
            limit = until(c, _PATIENCE if timeout is None else timeout)
            if not (yield Wait(lambda: one.state is not State.SYN_SENT, limit)):
                if timeout is not None:
                    raise LinuxError(EINPROGRESS)
                one.disconnect()
                one.error = ETIMEDOUT
        one.connection_result()
        return 0

    def find(self, c: Caller, address: bytes) -> Socket:
        """Return what stands for an address: the socket that has it is found when it is sent to."""
        network = c.kernel.addresses.network
        return network.destination(self._form, self._form.read(address), c.kernel.file_memory)


for _form in (FORM4, FORM6):
    FAMILIES[_form.family] = Inet(_form)
