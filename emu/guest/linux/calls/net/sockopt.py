"""getsockopt and setsockopt.  Source: Linux net/core/sock.c, include/uapi/asm-generic/socket.h.

Options that are integers stand in tables by level; most are kept and reported, and change nothing
here.  Source: Linux net/ipv4/ip_sockglue.c, tcp.c, net/ipv6/ipv6_sockglue.c,
include/uapi/linux/in.h, in6.h, tcp.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

from emu.guest.linux.calls.net.socket import socket_of
from emu.guest.linux.calls.table import Address, Caller, Int, call
from emu.guest.linux.errno import EDOM, EINVAL, ENODEV, ENOPROTOOPT, ENOTCONN, EOPNOTSUPP, EPERM, LinuxError
from emu.guest.linux.net import loopback
from emu.guest.linux.net.addresses import AF_INET6
from emu.guest.linux.net.inet import InetSocket
from emu.guest.linux.net.netlink import SOL_NETLINK, NetlinkSocket
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.net.sock import SO_REUSEADDR, SO_REUSEPORT, SOL_SOCKET
from emu.guest.linux.net.tcp import State, TcpSocket
from emu.guest.linux.net.udp import UdpSocket
from emu.guest.linux.net.unix import Socket
from emu.support.immutable import immutable

_DEBUG, _TYPE, _ERROR, _DONTROUTE, _BROADCAST, _SNDBUF, _RCVBUF, _KEEPALIVE = 1, 3, 4, 5, 6, 7, 8, 9
_OOBINLINE, _NO_CHECK, _PRIORITY, _LINGER, _BSDCOMPAT = 10, 11, 12, 13, 14
_PASSCRED, _PEERCRED, _RCVLOWAT, _SNDLOWAT = 16, 17, 18, 19
_RCVTIMEO_OLD, _SNDTIMEO_OLD, _BINDTODEVICE, _TIMESTAMP, _ACCEPTCONN = 20, 21, 25, 29, 30
_SNDBUFFORCE, _RCVBUFFORCE, _TIMESTAMPNS, _MARK, _PROTOCOL, _DOMAIN = 32, 33, 35, 36, 38, 39
_INCOMING_CPU: Final = 49
_RCVTIMEO_NEW, _SNDTIMEO_NEW = 66, 67
_SECOND: Final = 1_000_000_000
# Options that are remembered and told, and change nothing here, but for SO_REUSEADDR and SO_REUSEPORT of a network.
_FLAGS: Final = frozenset(
    {_DEBUG, SO_REUSEADDR, _DONTROUTE, _BROADCAST, _KEEPALIVE, _OOBINLINE, _NO_CHECK, _BSDCOMPAT, SO_REUSEPORT,
     _TIMESTAMP, _TIMESTAMPNS}
)  # fmt: skip
_NUMBERS_KEPT: Final = frozenset({_PRIORITY, _MARK, _RCVLOWAT})
_SMALLEST_SEND, _SMALLEST_RECEIVE = 4608, 2304
_LARGEST_BUFFER: Final = 212_992
_LONGEST_VALUE: Final = 256
# struct linger: whether closing waits, and for how many seconds.
_LINGER_FORM: Final = struct.Struct("<ii")


_SOL_IP, _SOL_TCP, _SOL_UDP, _SOL_IPV6 = 0, 6, 17, 41
_ANY_NUMBER: Final = (-(1 << 31), (1 << 31) - 1)
_BYTE: Final = (0, 255)
# The segments of a connection over the loopback, and of a socket without one (TCP_MSS_DEFAULT).
_SEGMENT, _DEFAULT_SEGMENT, _SMALLEST_SEGMENT = 65_483, 536, 88
_CUBIC: Final = b"cubic"


class Ip(IntEnum):
    """IP_*."""

    TOS = 1
    TTL = 2
    HDRINCL = 3
    OPTIONS = 4
    ROUTER_ALERT = 5
    RECVOPTS = 6
    RETOPTS = 7
    PKTINFO = 8
    MTU_DISCOVER = 10
    RECVERR = 11
    RECVTTL = 12
    RECVTOS = 13
    MTU = 14
    FREEBIND = 15
    PASSSEC = 18
    TRANSPARENT = 19
    RECVORIGDSTADDR = 20
    MINTTL = 21
    NODEFRAG = 22
    BIND_ADDRESS_NO_PORT = 24
    MULTICAST_IF = 32
    MULTICAST_TTL = 33
    MULTICAST_LOOP = 34
    ADD_MEMBERSHIP = 35
    DROP_MEMBERSHIP = 36
    ADD_SOURCE_MEMBERSHIP = 39
    DROP_SOURCE_MEMBERSHIP = 40
    MULTICAST_ALL = 49
    UNICAST_IF = 50
    LOCAL_PORT_RANGE = 51


class Tcp(IntEnum):
    """TCP_*."""

    NODELAY = 1
    MAXSEG = 2
    CORK = 3
    KEEPIDLE = 4
    KEEPINTVL = 5
    KEEPCNT = 6
    SYNCNT = 7
    LINGER2 = 8
    DEFER_ACCEPT = 9
    WINDOW_CLAMP = 10
    INFO = 11
    QUICKACK = 12
    CONGESTION = 13
    THIN_LINEAR_TIMEOUTS = 16
    THIN_DUPACK = 17
    USER_TIMEOUT = 18
    FASTOPEN = 23
    TIMESTAMP = 24
    NOTSENT_LOWAT = 25
    FASTOPEN_CONNECT = 30
    ULP = 31
    INQ = 36


class Udp(IntEnum):
    """UDP_*."""

    CORK = 1
    ENCAP = 100
    NO_CHECK6_TX = 101
    NO_CHECK6_RX = 102
    SEGMENT = 103
    GRO = 104


class Ipv6(IntEnum):
    """IPV6_*; OLD_* are those of RFC 2292."""

    OLD_PKTINFO = 2
    OLD_HOPOPTS = 3
    OLD_DSTOPTS = 4
    OLD_RTHDR = 5
    OLD_HOPLIMIT = 8
    FLOWINFO = 11
    UNICAST_HOPS = 16
    MULTICAST_IF = 17
    MULTICAST_HOPS = 18
    MULTICAST_LOOP = 19
    ADD_MEMBERSHIP = 20
    DROP_MEMBERSHIP = 21
    ROUTER_ALERT = 22
    MTU_DISCOVER = 23
    MTU = 24
    RECVERR = 25
    V6ONLY = 26
    FLOWINFO_SEND = 33
    RECVPKTINFO = 49
    RECVHOPLIMIT = 51
    RECVHOPOPTS = 53
    RECVRTHDR = 56
    RECVDSTOPTS = 58
    RECVPATHMTU = 60
    DONTFRAG = 62
    RECVTCLASS = 66
    TCLASS = 67
    AUTOFLOWLABEL = 70
    ADDR_PREFERENCES = 72
    MINHOPCOUNT = 73
    TRANSPARENT = 75
    UNICAST_IF = 76
    FREEBIND = 78


def _keep(_one: Socket, number: int) -> int:
    return number


@immutable
class Option:
    """An option that is an integer."""

    default: int = 0
    allowed: tuple[int, int] = _ANY_NUMBER
    change: Callable[[Socket, int], int] = _keep
    """Returns the number to remember for the one that was set.  Raises `LinuxError`."""
    tell: Callable[[Socket], int] | None = None
    """Returns the number to tell; None: the one that was remembered."""


def _flag(_one: Socket, number: int) -> int:
    return int(bool(number))


def _refuse(error: int) -> Callable[[Socket, int], int]:
    """Return the change of an option that cannot be set."""

    def change(_one: Socket, _number: int) -> int:
        raise LinuxError(error)

    return change


def _or_default(default: int) -> Callable[[Socket, int], int]:
    """Return the change of an option whose -1 means the default."""
    return lambda _one, number: default if number == -1 else number


def _type_of_service(one: Socket, number: int) -> int:
    return number & (0xFC if one.is_stream else 0xFF)


def _traffic_class(one: Socket, number: int) -> int:
    return 0 if number == -1 else _type_of_service(one, number)


def _time_to_live(_one: Socket, number: int) -> int:
    if number == 0:
        raise LinuxError(EINVAL)
    return 64 if number == -1 else number


def _mtu(one: Socket) -> int:
    if one.peer_address() is None:
        raise LinuxError(ENOTCONN)
    return loopback.MTU


def _unknown(_one: Socket) -> int:
    raise LinuxError(ENOPROTOOPT)


def _only_v6(one: Socket, number: int) -> int:
    assert isinstance(one, InetSocket)
    if one.has_port:
        raise LinuxError(EINVAL)
    one.only_v6 = bool(number)
    return int(one.only_v6)


def _largest_segment(_one: Socket, number: int) -> int:
    if 0 < number < _SMALLEST_SEGMENT:
        raise LinuxError(EINVAL)
    return number


def _segment(one: Socket) -> int:
    assert isinstance(one, TcpSocket)
    connected = one.state not in {State.CLOSE, State.LISTEN}
    asked = one.options.others.get((_SOL_TCP, Tcp.MAXSEG), 0)
    return _SEGMENT if connected else asked or _DEFAULT_SEGMENT


_FLAG: Final = Option(change=_flag)
_SET_FLAG: Final = Option(1, change=_flag)
_SECONDS: Final = (1, 32_767)
_NOT_NEGATIVE: Final = (0, (1 << 31) - 1)

_IP: Final = {
    Ip.TOS: Option(change=_type_of_service),
    Ip.TTL: Option(64, (-1, 255), _time_to_live),
    **dict.fromkeys((Ip.HDRINCL, Ip.ROUTER_ALERT), Option(change=_refuse(ENOPROTOOPT))),
    **dict.fromkeys(
        (Ip.RECVOPTS, Ip.RETOPTS, Ip.PKTINFO, Ip.RECVERR, Ip.RECVTTL, Ip.RECVTOS, Ip.FREEBIND, Ip.PASSSEC,
         Ip.RECVORIGDSTADDR, Ip.NODEFRAG, Ip.BIND_ADDRESS_NO_PORT, Ip.UNICAST_IF),
        _FLAG,
    ),
    Ip.MTU_DISCOVER: Option(1, (0, 5)),
    Ip.MTU: Option(change=_refuse(ENOPROTOOPT), tell=_mtu),
    Ip.TRANSPARENT: Option(change=_refuse(EPERM)),
    Ip.MINTTL: Option(0, _BYTE),
    Ip.MULTICAST_IF: Option(change=lambda _one, _number: 0),
    Ip.MULTICAST_TTL: Option(1, (-1, 255), _or_default(1)),
    **dict.fromkeys((Ip.MULTICAST_LOOP, Ip.MULTICAST_ALL), _SET_FLAG),
    **dict.fromkeys(
        (Ip.ADD_MEMBERSHIP, Ip.DROP_MEMBERSHIP, Ip.ADD_SOURCE_MEMBERSHIP, Ip.DROP_SOURCE_MEMBERSHIP),
        Option(change=_refuse(ENODEV), tell=_unknown),
    ),
    Ip.LOCAL_PORT_RANGE: Option(),
}  # fmt: skip
_TCP: Final = {
    **dict.fromkeys((Tcp.NODELAY, Tcp.CORK, Tcp.THIN_LINEAR_TIMEOUTS, Tcp.THIN_DUPACK, Tcp.FASTOPEN_CONNECT), _FLAG),
    **dict.fromkeys((Tcp.DEFER_ACCEPT, Tcp.WINDOW_CLAMP, Tcp.TIMESTAMP, Tcp.NOTSENT_LOWAT, Tcp.INQ), Option()),
    Tcp.MAXSEG: Option(0, _NOT_NEGATIVE, _largest_segment, _segment),
    Tcp.KEEPIDLE: Option(7200, _SECONDS),
    Tcp.KEEPINTVL: Option(75, _SECONDS),
    Tcp.KEEPCNT: Option(9, (1, 127)),
    Tcp.SYNCNT: Option(6, (1, 127)),
    Tcp.LINGER2: Option(60),
    Tcp.QUICKACK: _SET_FLAG,
    **dict.fromkeys((Tcp.USER_TIMEOUT, Tcp.FASTOPEN), Option(0, _NOT_NEGATIVE)),
}
_UDP: Final = dict.fromkeys(Udp, _FLAG)
_IPV6: Final = {
    Ipv6.UNICAST_HOPS: Option(64, (-1, 255), _or_default(64)),
    Ipv6.MULTICAST_IF: Option(0, (0, loopback.INDEX)),
    Ipv6.MULTICAST_HOPS: Option(1, (-1, 255), _or_default(1)),
    Ipv6.MULTICAST_LOOP: _SET_FLAG,
    **dict.fromkeys((Ipv6.ADD_MEMBERSHIP, Ipv6.DROP_MEMBERSHIP), Option(change=_refuse(ENODEV), tell=_unknown)),
    Ipv6.ROUTER_ALERT: Option(change=_refuse(ENOPROTOOPT)),
    Ipv6.MTU_DISCOVER: Option(1, (0, 5)),
    Ipv6.MTU: Option(tell=_mtu),
    Ipv6.V6ONLY: Option(change=_only_v6),
    **dict.fromkeys(
        (Ipv6.OLD_PKTINFO, Ipv6.OLD_HOPOPTS, Ipv6.OLD_DSTOPTS, Ipv6.OLD_RTHDR, Ipv6.OLD_HOPLIMIT, Ipv6.FLOWINFO,
         Ipv6.RECVERR, Ipv6.FLOWINFO_SEND, Ipv6.RECVPKTINFO, Ipv6.RECVHOPLIMIT, Ipv6.RECVHOPOPTS, Ipv6.RECVRTHDR,
         Ipv6.RECVDSTOPTS, Ipv6.RECVPATHMTU, Ipv6.DONTFRAG, Ipv6.RECVTCLASS, Ipv6.UNICAST_IF, Ipv6.FREEBIND),
        _FLAG,
    ),
    Ipv6.TCLASS: Option(0, (-1, 255), _traffic_class),
    Ipv6.AUTOFLOWLABEL: _SET_FLAG,
    Ipv6.ADDR_PREFERENCES: Option(1280),
    Ipv6.MINHOPCOUNT: Option(0, _BYTE),
    Ipv6.TRANSPARENT: Option(change=_refuse(EPERM)),
}  # fmt: skip


def _options_of(one: InetSocket, level: int) -> Mapping[Any, Option] | None:
    """Return the integers of a level; None: the socket has nothing of that level."""
    if level == _SOL_IP:
        return _IP
    if level == _SOL_TCP and isinstance(one, TcpSocket):
        return _TCP
    if level == _SOL_UDP and isinstance(one, UdpSocket):
        return _UDP
    return _IPV6 if level == _SOL_IPV6 and one.family == AF_INET6 else None


def told(one: Socket, level: int, option: int) -> bytes:
    """Return an option's value, as getsockopt has it.

    Raises `LinuxError`: EOPNOTSUPP, ENOPROTOOPT, ...
    """
    if not isinstance(one, InetSocket):
        raise LinuxError(EOPNOTSUPP)
    known = _options_of(one, level)
    if known is None:
        raise LinuxError(ENOPROTOOPT if one.family == AF_INET6 else EOPNOTSUPP)
    text = _TEXTS.get((level, option))
    if text is not None:
        return text(one)
    found = known.get(option)
    if found is None:
        raise LinuxError(ENOPROTOOPT)
    number = found.tell(one) if found.tell else one.options.others.get((level, option), found.default)
    return struct.pack("<i", number)


def remember(one: Socket, level: int, option: int, value: bytes) -> None:
    """Set an option.  Raises `LinuxError`: EOPNOTSUPP, ENOPROTOOPT, EINVAL, ..."""
    if not isinstance(one, InetSocket):
        raise LinuxError(EOPNOTSUPP)
    known = _options_of(one, level)
    if known is None:
        raise LinuxError(ENOPROTOOPT)
    if (level, option) == (_SOL_TCP, Tcp.CONGESTION) and value.split(b"\0")[0] == _CUBIC:
        return
    if option not in known:
        raise LinuxError(ENOPROTOOPT)
    # IP takes one byte, too.
    if len(value) < (1 if level == _SOL_IP else 4):
        raise LinuxError(EINVAL)
    number = int.from_bytes(value[:4], "little", signed=True) if len(value) >= 4 else value[0]
    found = known[option]
    low, high = found.allowed
    if not low <= number <= high:
        raise LinuxError(EINVAL)
    one.options.others[level, option] = found.change(one, number)


def _info(one: Socket) -> bytes:
    """Return the beginning of struct tcp_info; what is not known is zero."""
    assert isinstance(one, TcpSocket)
    data = bytearray(248)
    options = 0x7 if one.state not in {State.CLOSE, State.LISTEN} else 0
    data[:8] = bytes((one.state, 0, 0, 0, 0, options, 0x77 if options else 0, 0))
    segment = _segment(one)
    struct.pack_into("<8I", data, 8, 200_000, 40_000 if options else 0, segment, segment if options else 0, 0, 0, 0, 0)
    if one.state is State.LISTEN:
        struct.pack_into("<I", data, 24, len(one.waiting))
        struct.pack_into("<I", data, 28, one.backlog or 0)
    return bytes(data)


# Options that are not integers.
_TEXTS: Final[dict[tuple[int, int], Callable[[Socket], bytes]]] = {
    (_SOL_IP, Ip.OPTIONS): lambda _one: b"",
    (_SOL_TCP, Tcp.INFO): _info,
    (_SOL_TCP, Tcp.CONGESTION): lambda _one: _CUBIC.ljust(16, b"\0"),
    (_SOL_TCP, Tcp.ULP): lambda _one: b"",
}


def _kept(option: int, default: int = 0) -> Callable[[Socket], int]:
    return lambda one: one.options.others.get((SOL_SOCKET, option), default)


# Options that are one integer.
_NUMBERS: Final[dict[int, Callable[[Socket], int]]] = {
    _TYPE: lambda one: one.type,
    _ERROR: lambda one: one.take_error(),
    _SNDBUF: lambda one: one.send_buffer,
    _RCVBUF: lambda one: one.receive_buffer,
    _PASSCRED: lambda one: int(one.options.pass_credentials),
    _RCVLOWAT: _kept(_RCVLOWAT, 1),
    _SNDLOWAT: lambda _one: 1,
    _ACCEPTCONN: lambda one: int(one.listening),
    _PROTOCOL: lambda one: one.protocol,
    _DOMAIN: lambda one: one.family,
    _INCOMING_CPU: lambda _one: 0,
    **{option: _kept(option) for option in (*sorted(_FLAGS), _PRIORITY, _MARK)},
}


def _timeout(c: Caller, option: int) -> tuple[str, struct.Struct] | None:
    """Return which timeout an option is, and the form of its struct timeval.

    None if it is not one.
    """
    form = struct.Struct("<qq" if c.word == 8 or option in {_RCVTIMEO_NEW, _SNDTIMEO_NEW} else "<ii")
    if option in {_RCVTIMEO_OLD, _RCVTIMEO_NEW}:
        return "receive_timeout", form
    if option in {_SNDTIMEO_OLD, _SNDTIMEO_NEW}:
        return "send_timeout", form
    return None


@call("getsockopt")
def getsockopt(c: Caller, fd: Int, level: Int, option: Int, to: Address, size_at: Address) -> int:
    """Report an option of a socket."""
    one = socket_of(c, fd)
    size = c.number(size_at, 4, signed=True)
    if size < 0:
        raise LinuxError(EINVAL)
    data = (_value(c, one, option) if level == SOL_SOCKET else told(one, level, option))[:size]
    c.write(to, data)
    c.write(size_at, struct.pack("<i", len(data)))
    return 0


def _value(c: Caller, one: Socket, option: int) -> bytes:
    timeout = _timeout(c, option)
    if timeout is not None:
        seconds, nanoseconds = divmod(getattr(one.options, timeout[0]) or 0, _SECOND)
        return timeout[1].pack(seconds, nanoseconds // 1000)
    if option == _LINGER:
        return _LINGER_FORM.pack(one.options.linger is not None, one.options.linger_time)
    if option == _BINDTODEVICE:
        return b""
    if option == _PEERCRED:
        known = one.peer_credentials or (one.credentials if one.listening else None) or Credentials(0, -1, -1)
        return struct.pack("<iii", known.pid, known.uid, known.gid)
    if option not in _NUMBERS:
        raise LinuxError(ENOPROTOOPT)
    return struct.pack("<i", _NUMBERS[option](one))


@call("setsockopt")
def setsockopt(c: Caller, fd: Int, level: Int, option: Int, value: Address, size: Int) -> int:
    """Set an option of a socket."""
    one = socket_of(c, fd)
    if size < 0:
        raise LinuxError(EINVAL)
    if level == SOL_NETLINK and isinstance(one, NetlinkSocket):
        return 0  # what they change, acknowledgements with more text, is not sent
    if level != SOL_SOCKET:
        remember(one, level, option, c.read(value, min(size, _LONGEST_VALUE)))
        return 0
    timeout = _timeout(c, option)
    if timeout is not None:
        name, form = timeout
        if size < form.size:
            raise LinuxError(EINVAL)
        seconds, microseconds = form.unpack(c.read(value, form.size))
        if not 0 <= microseconds < 1_000_000:
            raise LinuxError(EDOM)
        total = max(0, seconds * _SECOND + microseconds * 1000)
        setattr(one.options, name, total or None)
        return 0
    if option == _BINDTODEVICE:
        if c.read(value, min(size, 16)).split(b"\0")[0] not in {b"", loopback.NAME}:
            raise LinuxError(ENODEV)
        return 0
    if size < 4:
        raise LinuxError(EINVAL)
    if option == _LINGER:
        if size < _LINGER_FORM.size:
            raise LinuxError(EINVAL)
        on, seconds = _LINGER_FORM.unpack(c.read(value, _LINGER_FORM.size))
        one.options.linger = seconds if on else None
        one.options.linger_time = seconds if on else one.options.linger_time
        return 0
    _set(one, option, c.number(value, 4, signed=True))
    return 0


def _set(one: Socket, option: int, number: int) -> None:
    if option == _PASSCRED:
        one.options.pass_credentials = bool(number)
    elif option in {_SNDBUF, _SNDBUFFORCE}:
        limit = _LARGEST_BUFFER if option == _SNDBUF else 1 << 30
        one.send_buffer = max(2 * min(max(number, 0), limit), _SMALLEST_SEND)
    elif option in {_RCVBUF, _RCVBUFFORCE}:
        limit = _LARGEST_BUFFER if option == _RCVBUF else 1 << 30
        one.receive_buffer = max(2 * min(max(number, 0), limit), _SMALLEST_RECEIVE)
    elif option in _FLAGS:
        one.options.others[SOL_SOCKET, option] = int(bool(number))
    elif option in _NUMBERS_KEPT:
        one.options.others[SOL_SOCKET, option] = number
    else:
        raise LinuxError(ENOPROTOOPT)
