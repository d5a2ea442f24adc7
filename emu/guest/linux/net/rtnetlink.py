"""Answers of the kernel about interfaces, addresses and routes: there is the loopback alone.

Source: Linux net/core/rtnetlink.c, net/ipv4/devinet.c, fib_frontend.c, net/ipv6/addrconf.c,
include/uapi/linux/rtnetlink.h, if_link.h, if_addr.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from emu.guest.linux.errno import EINVAL, ENODEV, EOPNOTSUPP, LinuxError
from emu.guest.linux.net import loopback
from emu.guest.linux.net.addresses import AF_INET, AF_INET6, FORM4, FORM6, own_address, route

GETLINK, GETADDR, GETROUTE = 18, 22, 26
_NEWLINK, _NEWADDR, _NEWROUTE = 16, 20, 24
_AF_PACKET: Final = 17
# struct ifinfomsg: family, hardware, index, flags, change.
_LINK: Final = struct.Struct("<BxHiII")
# struct ifaddrmsg: family, prefix, flags, scope, index.
_ADDRESS: Final = struct.Struct("<BBBBI")
# struct rtmsg: family, prefix, source's prefix, service, table, protocol, scope, type, flags.
_ROUTE: Final = struct.Struct("<BBBBBBBBI")
_PERMANENT, _HOST = 0x80, 254
_LOCAL_TABLE, _BY_KERNEL, _UNICAST, _LOCAL, _BROADCAST = 255, 2, 1, 2, 3
# RTM_F_CLONED, RTCF_LOCAL.
_LOOKED_UP: Final = 0x200 | 0x8000_0000
_FOREVER: Final = b"\xff" * 8 + bytes(8)
_LOOPBACK6: Final = bytes(15) + b"\x01"


class Answer(NamedTuple):
    """A message of the kernel: its type and what follows the head."""

    kind: int
    body: bytes


def _attributes(*found: tuple[int, bytes]) -> bytes:
    return b"".join(
        struct.pack("<HH", 4 + len(value), kind) + value.ljust(-(-len(value) // 4) * 4, b"\0") for kind, value in found
    )


def _number(value: int) -> bytes:
    return struct.pack("<I", value)


def _link() -> Answer:
    head = _LINK.pack(0, loopback.HARDWARE, loopback.INDEX, loopback.FLAGS | loopback.LOWER_UP, 0)
    # Name, queue's length, state, mode, MTU, its bounds, group, promiscuity, numbers of queues, carrier, discipline,
    # counters, address, broadcast address.
    return Answer(
        _NEWLINK,
        head
        + _attributes(
            (3, loopback.NAME + b"\0"),
            (13, _number(loopback.QUEUE)),
            (16, b"\0"),
            (17, b"\0"),
            (4, _number(loopback.MTU)),
            (50, _number(0)),
            (51, _number(0)),
            (27, _number(0)),
            (30, _number(0)),
            (31, _number(1)),
            (32, _number(1)),
            (33, b"\1"),
            (6, b"noqueue\0"),
            (23, bytes(25 * 8)),
            (7, bytes(24 * 4)),
            (1, bytes(6)),
            (2, bytes(6)),
        ),
    )


def _addresses(family: int) -> Iterator[Answer]:
    if family in {0, AF_INET}:
        head = _ADDRESS.pack(AF_INET, loopback.PREFIX, _PERMANENT, _HOST, loopback.INDEX)
        host, name = loopback.ADDRESS, loopback.NAME + b"\0"
        yield Answer(
            _NEWADDR, head + _attributes((1, host), (2, host), (3, name), (8, _number(_PERMANENT)), (6, _FOREVER))
        )
    if family in {0, AF_INET6}:
        head = _ADDRESS.pack(AF_INET6, 128, _PERMANENT, _HOST, loopback.INDEX)
        yield Answer(
            _NEWADDR, head + _attributes((1, _LOOPBACK6), (6, _FOREVER), (8, _number(_PERMANENT)), (11, b"\1"))
        )


def _routes(family: int) -> Iterator[Answer]:
    """Yield the routes of the local table: net, address and broadcast address of 127.0.0.1/8, ::1."""
    table, output = (15, _number(_LOCAL_TABLE)), (4, _number(loopback.INDEX))
    if family in {0, AF_INET}:
        for prefix, host, scope, kind in (
            (8, bytes((127, 0, 0, 0)), _HOST, _LOCAL),
            (32, loopback.ADDRESS, _HOST, _LOCAL),
            (32, bytes((127, 255, 255, 255)), _HOST - 1, _BROADCAST),
        ):
            head = _ROUTE.pack(AF_INET, prefix, 0, 0, _LOCAL_TABLE, _BY_KERNEL, scope, kind, 0)
            yield Answer(_NEWROUTE, head + _attributes(table, (1, host), (7, loopback.ADDRESS), output))
    if family in {0, AF_INET6}:
        head = _ROUTE.pack(AF_INET6, 128, 0, 0, _LOCAL_TABLE, _BY_KERNEL, 0, _LOCAL, 0)
        yield Answer(_NEWROUTE, head + _attributes(table, (1, _LOOPBACK6), (6, _number(0)), output, (20, b"\0")))


def dump(kind: int, body: bytes) -> list[Answer]:
    """Return all objects that a dump asks for."""
    family = body[0] if body else 0
    if kind == GETLINK:
        return [_link()] if family in {0, _AF_PACKET, AF_INET, AF_INET6} else []
    if kind == GETADDR:
        return list(_addresses(family))
    if kind == GETROUTE:
        return list(_routes(family))
    return []


def one(kind: int, body: bytes) -> Answer:
    """Return the object that a request names.

    Raises `LinuxError`: ENODEV, ENETUNREACH, EINVAL, EOPNOTSUPP.
    """
    if kind == GETLINK:
        return _named_link(body)
    if kind == GETROUTE:
        return _route_to(body)
    raise LinuxError(EOPNOTSUPP)


def _given(body: bytes, at: int) -> dict[int, bytes]:
    """Return the attributes of a request."""
    found = {}
    while at + 4 <= len(body):
        size, kind = struct.unpack_from("<HH", body, at)
        if size < 4:
            break
        found[kind] = body[at + 4 : at + size]
        at += -(-size // 4) * 4
    return found


def _named_link(body: bytes) -> Answer:
    if len(body) < _LINK.size:
        raise LinuxError(EINVAL)
    index = struct.unpack_from("<i", body, 4)[0]
    given = _given(body, _LINK.size)
    name = given.get(3, given.get(53, b"")).split(b"\0")[0]
    if index != loopback.INDEX and (index or name != loopback.NAME):
        raise LinuxError(ENODEV if index or name else EINVAL)
    return _link()


def _route_to(body: bytes) -> Answer:
    if len(body) < _ROUTE.size:
        raise LinuxError(EINVAL)
    family, wanted = body[0], _given(body, _ROUTE.size).get(1, b"")
    form = {AF_INET: FORM4, AF_INET6: FORM6}.get(family)
    if form is None:
        raise LinuxError(EOPNOTSUPP)
    size = 4 if family == AF_INET else 16
    if len(wanted) != size:
        raise LinuxError(EINVAL)
    host = route(form.any[: 16 - size] + wanted)
    head = _ROUTE.pack(family, 8 * size, 0, 0, _LOCAL_TABLE, 0, 0, _LOCAL, _LOOKED_UP)
    attributes = _attributes(
        (15, _number(_LOCAL_TABLE)),
        (1, host[-size:]),
        (4, _number(loopback.INDEX)),
        (7, own_address(host)[-size:]),
    )
    return Answer(_NEWROUTE, head + attributes)
