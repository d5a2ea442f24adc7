"""getsockopt and setsockopt.  Source: Linux net/core/sock.c, include/uapi/asm-generic/socket.h."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from emu.guest.linux.calls.sockets import socket_of
from emu.guest.linux.calls.table import Address, Caller, Int, call
from emu.guest.linux.errno import EDOM, EINVAL, ENOPROTOOPT, EOPNOTSUPP, LinuxError
from emu.guest.linux.netlink import SOL_NETLINK, NetlinkSocket
from emu.guest.linux.socket_messages import Credentials
from emu.guest.linux.sockets import Socket

_SOL_SOCKET: Final = 1
_DEBUG, _REUSEADDR, _TYPE, _ERROR, _BROADCAST, _SNDBUF, _RCVBUF, _KEEPALIVE = 1, 2, 3, 4, 6, 7, 8, 9
_PRIORITY, _LINGER, _REUSEPORT, _PASSCRED, _PEERCRED, _RCVLOWAT, _SNDLOWAT = 12, 13, 15, 16, 17, 18, 19
_RCVTIMEO_OLD, _SNDTIMEO_OLD, _TIMESTAMP, _ACCEPTCONN = 20, 21, 29, 30
_SNDBUFFORCE, _RCVBUFFORCE, _PROTOCOL, _DOMAIN = 32, 33, 38, 39
_RCVTIMEO_NEW, _SNDTIMEO_NEW = 66, 67
_SECOND: Final = 1_000_000_000
# Options that are remembered and told, and change nothing here.
_REMEMBERED: Final = frozenset({_DEBUG, _REUSEADDR, _BROADCAST, _KEEPALIVE, _PRIORITY, _REUSEPORT, _TIMESTAMP})
_DEFAULT_BUFFER: Final = 212_992
_SMALLEST_SEND, _SMALLEST_RECEIVE = 4608, 2304
_LARGEST_BUFFER: Final = 212_992

# Options that are one integer.
_NUMBERS: Final[dict[int, Callable[[Socket], int]]] = {
    _TYPE: lambda one: one.type,
    _ERROR: lambda one: one.take_error(),
    _SNDBUF: lambda one: one.send_buffer,
    _RCVBUF: lambda one: one.options.others.get(_RCVBUF, _DEFAULT_BUFFER),
    _PASSCRED: lambda one: int(one.options.pass_credentials),
    _RCVLOWAT: lambda one: one.options.others.get(_RCVLOWAT, 1),
    _SNDLOWAT: lambda _one: 1,
    _ACCEPTCONN: lambda one: int(one.listening),
    _PROTOCOL: lambda _one: 0,
    _DOMAIN: lambda one: one.family,
    **{
        option: lambda one, option=option: one.options.others.get(option, 0)  # type: ignore[misc]
        for option in _REMEMBERED
    },
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
    if level != _SOL_SOCKET:
        raise LinuxError(EOPNOTSUPP)
    data = _value(c, one, option)[:size]
    c.write(to, data)
    c.write(size_at, struct.pack("<i", len(data)))
    return 0


def _value(c: Caller, one: Socket, option: int) -> bytes:
    timeout = _timeout(c, option)
    if timeout is not None:
        seconds, nanoseconds = divmod(getattr(one.options, timeout[0]) or 0, _SECOND)
        return timeout[1].pack(seconds, nanoseconds // 1000)
    if option == _LINGER:
        return struct.pack("<ii", 0, one.options.others.get(_LINGER, 0))
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
    if level != _SOL_SOCKET:
        raise LinuxError(EOPNOTSUPP)
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
    if size < 4:
        raise LinuxError(EINVAL)
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
        one.options.others[_RCVBUF] = max(2 * min(max(number, 0), limit), _SMALLEST_RECEIVE)
    elif option in {_RCVLOWAT, _LINGER}:
        one.options.others[option] = number
    elif option in _REMEMBERED:
        one.options.others[option] = int(bool(number)) if option != _PRIORITY else number
    else:
        raise LinuxError(ENOPROTOOPT)
