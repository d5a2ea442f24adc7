"""System calls that send and receive through sockets.

Source: Linux net/socket.c, net/core/scm.c, net/unix/af_unix.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from functools import partial
from typing import Final

from emu.guest.linux.calls.fs.read_write import gather, scatter, vector_of
from emu.guest.linux.calls.fs.select import duration
from emu.guest.linux.calls.net.scm import Control, read_control, write_control
from emu.guest.linux.calls.net.socket import (
    credentials_of,
    find,
    packed_address,
    read_address,
    socket_of,
    until,
    write_address,
)
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import (
    EAGAIN,
    EINVAL,
    EISCONN,
    EMSGSIZE,
    EOPNOTSUPP,
    EPIPE,
    LinuxError,
)
from emu.guest.linux.fs.open_file import O_NONBLOCK
from emu.guest.linux.net.netlink import NetlinkSocket
from emu.guest.linux.net.skb import Received, release
from emu.guest.linux.net.sock import Kind
from emu.guest.linux.net.unix import Socket
from emu.guest.linux.process.process import InterruptedBySignalError, Wait
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo

MSG_OOB, MSG_PEEK, MSG_CTRUNC, MSG_TRUNC = 0x1, 0x2, 0x8, 0x20
MSG_DONTWAIT, MSG_WAITALL, MSG_ERRQUEUE, MSG_NOSIGNAL = 0x40, 0x100, 0x2000, 0x4000
MSG_WAITFORONE: Final = 0x10000
MSG_CMSG_CLOEXEC: Final = 0x4000_0000
# The most messages in one call, and parts of one message (UIO_MAXIOV).
_MESSAGES_MAX: Final = 1024
_LARGEST: Final = 0x7FFF_F000
# struct msghdr by the bytes of a word: name, its size, the vector, its count, control data, its size, flags.
_HEADER: Final = {8: struct.Struct("<QI4xQQQQi4x"), 4: struct.Struct("<IIIIIIi")}


# -- sending


def _send(
    c: Caller, one: Socket, data: bytes, flags: int, to: Socket | None = None, control: Control | None = None
) -> Blocking:
    """Send all of it, waiting while the buffer is full; return how much was sent."""
    if flags & MSG_OOB:
        raise LinuxError(EOPNOTSUPP)
    control = control or Control()
    credentials = control.credentials or credentials_of(c)
    files, done = control.files, 0
    wait = not (flags & MSG_DONTWAIT or one.flags & O_NONBLOCK)
    while True:
        try:
            sent = one.send(data[done:] if done else data, credentials, files=files, to=to)
        except LinuxError as error:
            if done:
                return done
            if error.number == EPIPE and one.is_stream and not flags & MSG_NOSIGNAL:
                c.kernel.sending.send_thread(c.thread, SignalInfo(Signal.SIGPIPE, SI_USER, pid=c.process.pid))
            raise
        if sent > 0:
            done, files = done + sent, ()
        if sent >= 0 and done >= len(data):
            return done
        if not wait:
            break
        target = to or one.peer
        assert target is not None, "without one, send() raises or is done"
        try:
            ready = partial(one.can_send, target)
            if not (yield Wait(ready, until(c, one.options.send_timeout))):
                break
        except InterruptedBySignalError:
            if done:
                return done
            raise
    if done:
        return done
    raise LinuxError(EAGAIN)


def _target(c: Caller, one: Socket, address: int, size: int) -> Socket | None:
    """Return the socket that a message names.

    Raises `LinuxError`: EISCONN, EOPNOTSUPP, EINVAL, ...
    """
    if not address or not size:
        return None
    if isinstance(one, NetlinkSocket):
        one.check_target(c.read(address, min(size, 128)))
        return None
    if one.is_connection:
        return None  # whatever the address (net/ipv4/tcp.c, tcp_sendmsg_locked)
    if one.is_stream:
        raise LinuxError(EISCONN if one.connected else EOPNOTSUPP)
    name = read_address(c, address, size)
    if name is None:
        raise LinuxError(EINVAL)
    return None if one.kind is Kind.SEQPACKET else find(c, name)


@call("sendto")
def sendto(
    c: Caller, fd: Int, buffer: Address, size: Size, flags: Unsigned, address: Address, address_size: Int
) -> Blocking:
    """Send."""
    one = socket_of(c, fd)
    target = _target(c, one, address, address_size)
    return (yield from _send(c, one, c.read(buffer, min(size, _LARGEST)), flags, target))


@call("send")
def send(c: Caller, fd: Int, buffer: Address, size: Size, flags: Unsigned) -> Blocking:
    """Send."""
    return (yield from sendto(c, fd, buffer, size, flags, 0, 0))


def _sendmsg(c: Caller, fd: int, header: int, flags: int) -> Blocking:
    one = socket_of(c, fd)
    form = _HEADER[c.word]
    name, name_size, vector, count, control, control_size, _flags = form.unpack(c.read(header, form.size))
    if count > _MESSAGES_MAX:
        raise LinuxError(EMSGSIZE)
    data = gather(c, vector_of(c, vector, count))
    target = _target(c, one, name, name_size)
    return (yield from _send(c, one, data, flags, target, read_control(c, control, control_size)))


@call("sendmsg")
def sendmsg(c: Caller, fd: Int, header: Address, flags: Unsigned) -> Blocking:
    """Send a message, with files or credentials."""
    return (yield from _sendmsg(c, fd, header, flags))


@call("sendmmsg")
def sendmmsg(c: Caller, fd: Int, vector: Address, count: Unsigned, flags: Unsigned) -> Blocking:
    """Send several messages."""
    return (yield from _several(c, fd, vector, count, lambda header: _sendmsg(c, fd, header, flags)))


def _several(
    c: Caller,
    fd: int,
    vector: int,
    count: int,
    one: Callable[[int], Blocking],
    stop: Callable[[], bool] = lambda: False,
) -> Blocking:
    """Send or receive messages by `one`, until one fails or `stop`; return how many there were.

    `one` takes the address of a struct msghdr.  The result of each call is written behind it
    (struct mmsghdr).
    """
    size = _HEADER[c.word].size
    done = 0
    socket_of(c, fd)
    for index in range(min(count, _MESSAGES_MAX)):
        at = vector + index * (size + c.word)
        try:
            result = yield from one(at)
        except LinuxError:
            if not done:
                raise
            break
        c.write(at + size, struct.pack("<I", result))
        done += 1
        if stop():
            break
    return done


# -- receiving


def _receive(c: Caller, one: Socket, size: int, flags: int, *, deadline: int | None = None
             ) -> Generator[Wait, bool, Received]:  # fmt: skip
    """Wait for a message; of a stream with MSG_WAITALL, for all of it."""
    if flags & MSG_OOB:
        raise LinuxError(EOPNOTSUPP)
    if flags & MSG_ERRQUEUE:
        raise LinuxError(EAGAIN)
    wait = not (flags & MSG_DONTWAIT or one.flags & O_NONBLOCK)
    peek = bool(flags & MSG_PEEK)
    whole = bool(flags & MSG_WAITALL) and one.is_stream and not peek
    limit = until(c, one.options.receive_timeout) if deadline is None else deadline
    so_far = Received()
    while True:
        if not size and one.is_stream:
            return so_far
        got = one.receive(size - len(so_far.data), peek=peek)
        if got is not None:
            so_far = _joined(so_far, got)
            if not whole or not got.data or got.files or len(so_far.data) >= size:
                return so_far
            continue
        if not wait:
            break
        try:
            if not (yield Wait(one.read_ready, limit)):
                break
        except InterruptedBySignalError:
            if so_far.data:
                return so_far
            raise
    if so_far.data:
        return so_far
    raise LinuxError(EAGAIN)


def _joined(first: Received, second: Received) -> Received:
    if not first.data:
        return second
    first.data += second.data
    first.full_size = len(first.data)
    first.files = second.files
    return first


@call("recvfrom")
def recvfrom(
    c: Caller, fd: Int, buffer: Address, size: Size, flags: Unsigned, address: Address, size_at: Address
) -> Blocking:
    """Receive."""
    one = socket_of(c, fd)
    got = yield from _receive(c, one, min(size, _LARGEST), flags)
    release(got.files)
    if not (flags & MSG_TRUNC and one.is_connection):
        c.write(buffer, got.data)
    if address:
        write_address(c, packed_address(one, got.name) if got.name else b"", address, size_at)
    return got.full_size if flags & MSG_TRUNC and not one.is_stream else len(got.data)


@call("recv")
def recv(c: Caller, fd: Int, buffer: Address, size: Size, flags: Unsigned) -> Blocking:
    """Receive."""
    return (yield from recvfrom(c, fd, buffer, size, flags, 0, 0))


def _recvmsg(c: Caller, fd: int, header: int, flags: int, *, deadline: int | None = None) -> Blocking:
    one = socket_of(c, fd)
    form = _HEADER[c.word]
    name, name_size, vector, count, control, control_size, _flags = form.unpack(c.read(header, form.size))
    if count > _MESSAGES_MAX:
        raise LinuxError(EMSGSIZE)
    buffers = vector_of(c, vector, count)
    got = yield from _receive(c, one, min(sum(size for _, size in buffers), _LARGEST), flags, deadline=deadline)
    if not (flags & MSG_TRUNC and one.is_connection):
        scatter(c, got.data, buffers)
    writer = write_control(c, one, got, control_size if control else 0, close_on_exec=bool(flags & MSG_CMSG_CLOEXEC))
    if writer.data:
        c.write(control, bytes(writer.data))
    address = packed_address(one, got.name) if got.name else b""
    if name:
        c.write(name, address[:name_size])
    told = (MSG_CTRUNC if writer.cut else 0) | flags & MSG_CMSG_CLOEXEC
    if got.full_size > len(got.data) and not one.is_stream:
        told |= MSG_TRUNC
    size = len(address) if name else 0
    c.write(header, form.pack(name, size, vector, count, control, len(writer.data), told))
    return got.full_size if flags & MSG_TRUNC and not one.is_stream else len(got.data)


@call("recvmsg")
def recvmsg(c: Caller, fd: Int, header: Address, flags: Unsigned) -> Blocking:
    """Receive a message, with files or credentials."""
    return (yield from _recvmsg(c, fd, header, flags))


@call("recvmmsg")
def recvmmsg(c: Caller, fd: Int, vector: Address, count: Unsigned, flags: Unsigned, timeout: Address) -> Blocking:
    """Receive several messages."""
    limit = duration(c, timeout)
    deadline = None if limit is None else c.now() + limit
    first = True

    def receive_one(header: int) -> Blocking:
        nonlocal first
        wait = 0 if first or not flags & MSG_WAITFORONE else MSG_DONTWAIT
        first = False
        return _recvmsg(c, fd, header, flags & ~MSG_WAITFORONE | wait, deadline=deadline)

    over = (lambda: False) if deadline is None else (lambda: c.now() >= deadline)
    return (yield from _several(c, fd, vector, count, receive_one, over))


# -- i386 makes all of them through one call


# SYS_* of socketcall by number (include/uapi/linux/net.h), and how many words each takes.
_BY_NUMBER: Final = {
    1: ("socket", 3), 2: ("bind", 3), 3: ("connect", 3), 4: ("listen", 2), 5: ("accept", 3), 6: ("getsockname", 3),
    7: ("getpeername", 3), 8: ("socketpair", 4), 9: ("send", 4), 10: ("recv", 4), 11: ("sendto", 6),
    12: ("recvfrom", 6), 13: ("shutdown", 2), 14: ("setsockopt", 5), 15: ("getsockopt", 5), 16: ("sendmsg", 3),
    17: ("recvmsg", 3), 18: ("accept4", 4), 19: ("recvmmsg", 5), 20: ("sendmmsg", 4),
}  # fmt: skip


def by_number(c: Caller, number: int, arguments: int) -> tuple[str, list[int]]:
    """Return which call socketcall asks for, and its arguments.  Raises `LinuxError` EINVAL."""
    if number not in _BY_NUMBER:
        raise LinuxError(EINVAL)
    name, count = _BY_NUMBER[number]
    return name, list(c.words(arguments, count))
