"""Addresses of the Internet protocols, as sockets keep them and as programs write them.

An address of IPv4 is kept as the IPv6 address that stands for it, such as `::ffff:127.0.0.1`, so
sockets of both families have addresses of one kind.  There is one interface, the loopback: its own
addresses can be reached, and no others.

Source: Linux include/uapi/linux/in.h, in6.h (data only), ip(7), ipv6(7).
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.errno import EAFNOSUPPORT, EINVAL, ENETUNREACH, LinuxError
from emu.support.immutable import immutable

AF_INET, AF_INET6 = 2, 10
# The beginning of the IPv6 addresses that stand for addresses of IPv4.
_MAPPED: Final = bytes(10) + b"\xff\xff"
ANY4: Final = _MAPPED + bytes(4)
ANY6: Final = bytes(16)
LOOPBACK4: Final = _MAPPED + bytes((127, 0, 0, 1))
LOOPBACK6: Final = bytes(15) + b"\x01"


@immutable
class Endpoint:
    """An address with a port."""

    host: bytes
    """16 bytes: an address of IPv6."""
    port: int = 0


def is_v4(host: bytes) -> bool:
    """Return whether an address stands for one of IPv4."""
    return host.startswith(_MAPPED)


def is_any(host: bytes) -> bool:
    """Return whether an address means all of its family."""
    return host in {ANY4, ANY6}


def is_local(host: bytes) -> bool:
    """Return whether an address is one of the loopback's: 127.0.0.0/8 or ::1."""
    return host == LOOPBACK6 or (is_v4(host) and host[12] == 127)


def own_address(host: bytes) -> bytes:
    """Return the address from which the loopback sends to another."""
    return LOOPBACK4 if is_v4(host) else LOOPBACK6


def route(host: bytes) -> bytes:
    """Return the address that packets for `host` reach.  Raises `LinuxError` ENETUNREACH."""
    if is_any(host):
        return own_address(host)
    if not is_local(host):
        raise LinuxError(ENETUNREACH)
    return host


def covers(host: bytes, other: bytes, *, only_v6: bool) -> bool:
    """Return whether a socket that is bound to `host` gets what is sent to `other`.

    With `only_v6` a socket that is bound to :: gets nothing of IPv4.
    """
    if host == ANY6:
        return not (only_v6 and is_v4(other))
    return host == other or (host == ANY4 and is_v4(other))


class Form:
    """The form of the addresses of one family (struct sockaddr_in, struct sockaddr_in6)."""

    family: int
    any: bytes
    """The address of a socket that is not bound."""
    smallest: int
    """The bytes that an address needs to have."""

    def pack(self, endpoint: Endpoint) -> bytes:
        """Return an address as programs read it."""
        raise NotImplementedError

    def _unpack(self, data: bytes) -> Endpoint:
        raise NotImplementedError

    def read(self, data: bytes) -> Endpoint:
        """Return the address that a program has written.

        Raises `LinuxError`: EINVAL, EAFNOSUPPORT.
        """
        if len(data) < self.smallest:
            raise LinuxError(EINVAL)
        if int.from_bytes(data[:2], "little") != self.family:
            raise LinuxError(EAFNOSUPPORT)
        return self._unpack(data)

    def read_to_bind(self, data: bytes) -> Endpoint:
        """Return the address that a program binds to.  Raises `LinuxError`: EINVAL, EAFNOSUPPORT."""
        return self.read(data)


class Form4(Form):
    """struct sockaddr_in: family, port, address, zeros."""

    family = AF_INET
    any = ANY4
    smallest = 16

    def pack(self, endpoint: Endpoint) -> bytes:
        """Return an address as programs read it."""
        return struct.pack("<H", AF_INET) + struct.pack(">H", endpoint.port) + endpoint.host[12:] + bytes(8)

    def _unpack(self, data: bytes) -> Endpoint:
        return Endpoint(_MAPPED + data[4:8], int.from_bytes(data[2:4], "big"))

    def read_to_bind(self, data: bytes) -> Endpoint:
        """Return the address that a program binds to: AF_UNSPEC is allowed with 0.0.0.0."""
        if len(data) >= self.smallest and data[:2] == bytes(2) and data[4:8] == bytes(4):
            return self._unpack(data)
        return self.read(data)


class Form6(Form):
    """struct sockaddr_in6: family, port, flow, address, scope."""

    family = AF_INET6
    any = ANY6
    # Without the scope (SIN6_LEN_RFC2133).
    smallest = 24

    def pack(self, endpoint: Endpoint) -> bytes:
        """Return an address as programs read it."""
        return struct.pack("<H", AF_INET6) + struct.pack(">HI", endpoint.port, 0) + endpoint.host + bytes(4)

    def _unpack(self, data: bytes) -> Endpoint:
        return Endpoint(data[8:24], int.from_bytes(data[2:4], "big"))


FORM4: Final = Form4()
FORM6: Final = Form6()
