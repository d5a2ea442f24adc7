"""getsockopt and setsockopt.  Source: Linux net/core/sock.c, include/uapi/asm-generic/socket.h."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from emu.guest.linux.calls.net.socket import socket_of
from emu.guest.linux.calls.net.sockopt_levels import remember, told
from emu.guest.linux.calls.table import Address, Caller, Int, call
from emu.guest.linux.errno import EDOM, EINVAL, ENODEV, ENOPROTOOPT, LinuxError
from emu.guest.linux.net import loopback
from emu.guest.linux.net.netlink import SOL_NETLINK, NetlinkSocket
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.net.sock import SO_REUSEADDR, SO_REUSEPORT, SOL_SOCKET
from emu.guest.linux.net.unix import Socket

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
