"""System calls that send and receive through sockets.

Source: Linux net/socket.c, net/core/scm.c, net/unix/af_unix.c.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from emu.guest.linux.calls.polling import duration
from emu.guest.linux.calls.reading import gather, scatter, vector_of
from emu.guest.linux.calls.sockets import (
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
    EPERM,
    EPIPE,
    LinuxError,
)
from emu.guest.linux.files import O_NONBLOCK, O_PATH, OpenFile
from emu.guest.linux.netlink import NetlinkSocket
from emu.guest.linux.process import InterruptedBySignalError, Wait
from emu.guest.linux.socket_messages import Credentials, Received, release
from emu.guest.linux.sockets import Kind, Socket
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo

MSG_OOB, MSG_PEEK, MSG_CTRUNC, MSG_TRUNC = 0x1, 0x2, 0x8, 0x20
MSG_DONTWAIT, MSG_WAITALL, MSG_ERRQUEUE, MSG_NOSIGNAL = 0x40, 0x100, 0x2000, 0x4000
MSG_WAITFORONE: Final = 0x10000
MSG_CMSG_CLOEXEC: Final = 0x4000_0000
_SOL_SOCKET: Final = 1
_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
# The most files in one message (SCM_MAX_FD), and messages in one call (UIO_MAXIOV).
_FILES_MAX: Final = 253
_MESSAGES_MAX: Final = 1024
_LARGEST: Final = 0x7FFF_F000
# struct msghdr by the bytes of a word: name, its size, the vector, its count, control data, its size, flags.
_HEADER: Final = {8: struct.Struct("<QI4xQQQQi4x"), 4: struct.Struct("<IIIIIIi")}
_UCRED: Final = struct.Struct("<iII")


@dataclass(slots=True)
class _Control:
    """The contents of control data."""

    files: tuple[OpenFile, ...] = ()
    credentials: Credentials | None = None


# -- sending


def _send(
    c: Caller, one: Socket, data: bytes, flags: int, to: Socket | None = None, control: _Control | None = None
) -> Blocking:
    """Send all of it, waiting where there is no room; return how much was sent."""
    if flags & MSG_OOB:
        raise LinuxError(EOPNOTSUPP)
    control = control or _Control()
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
    if one.is_stream:
        raise LinuxError(EISCONN if one.connected else EOPNOTSUPP)
    name = read_address(c, address, size)
    if name is None:
        raise LinuxError(EINVAL)
    return None if one.kind is Kind.SEQPACKET else find(c, name)


def _read_control(c: Caller, address: int, size: int) -> _Control:
    """Read control data.  Raises `LinuxError`: EINVAL, EBADF, EPERM."""
    control = _Control()
    if not address or not size:
        return control
    if size > 1 << 16:
        raise LinuxError(EINVAL)
    data = c.read(address, size)
    head = c.word + 8
    at = 0
    while at + head <= size:
        length = int.from_bytes(data[at : at + c.word], "little")
        level, kind = struct.unpack_from("<ii", data, at + c.word)
        if not head <= length <= size - at:
            raise LinuxError(EINVAL)
        body = data[at + head : at + length]
        if level == _SOL_SOCKET:
            _read_one(c, control, kind, body)
        at += -(-length // c.word) * c.word
    return control


def _read_one(c: Caller, control: _Control, kind: int, body: bytes) -> None:
    if kind == _SCM_RIGHTS:
        numbers = [number for (number,) in struct.iter_unpack("<i", body[: len(body) // 4 * 4])]
        if len(control.files) + len(numbers) > _FILES_MAX:
            raise LinuxError(EINVAL)
        files = [c.file(number) for number in numbers]
        if any(file.flags & O_PATH for file in files):
            raise LinuxError(9)  # EBADF
        control.files += tuple(files)
    elif kind == _SCM_CREDENTIALS:
        if len(body) != _UCRED.size:
            raise LinuxError(EINVAL)
        credentials = Credentials(*_UCRED.unpack(body))
        if credentials.pid != c.process.pid and c.kernel.processes.get(credentials.pid) is None:
            raise LinuxError(EPERM)
        control.credentials = credentials
    else:
        raise LinuxError(EINVAL)


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
    return (yield from _send(c, one, data, flags, target, _read_control(c, control, control_size)))


@call("sendmsg")
def sendmsg(c: Caller, fd: Int, header: Address, flags: Unsigned) -> Blocking:
    """Send a message, with files or credentials."""
    return (yield from _sendmsg(c, fd, header, flags))


@call("sendmmsg")
def sendmmsg(c: Caller, fd: Int, vector: Address, count: Unsigned, flags: Unsigned) -> Blocking:
    """Send several messages."""
    step = _HEADER[c.word].size + c.word
    done = 0
    socket_of(c, fd)
    for index in range(min(count, _MESSAGES_MAX)):
        at = vector + index * step
        try:
            sent = yield from _sendmsg(c, fd, at, flags)
        except LinuxError:
            if not done:
                raise
            break
        c.write(at + _HEADER[c.word].size, struct.pack("<I", sent))
        done += 1
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
    c.write(buffer, got.data)
    if address:
        write_address(c, packed_address(one, got.name) if got.name else b"", address, size_at)
    return got.full_size if flags & MSG_TRUNC and not one.is_stream else len(got.data)


@call("recv")
def recv(c: Caller, fd: Int, buffer: Address, size: Size, flags: Unsigned) -> Blocking:
    """Receive."""
    return (yield from recvfrom(c, fd, buffer, size, flags, 0, 0))


@dataclass(slots=True)
class _Writer:
    """Control data that is being written for the program."""

    c: Caller
    room: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, kind: int, body: bytes) -> None:
        """Add a control message; it is cut, or left out, if it does not fit."""
        word = self.c.word
        head = word + 8
        room = self.room - len(self.data)
        if room < head:
            self.cut = True
            return
        length = head + len(body)
        if length > room:
            self.cut = True
            length = room
        message = length.to_bytes(word, "little") + struct.pack("<ii", _SOL_SOCKET, kind) + body
        self.data += message[:length].ljust(min(-(-length // word) * word, room), b"\0")

    def files_that_fit(self) -> int:
        """Return how many descriptors a control message has room for."""
        return max(0, self.room - len(self.data) - self.c.word - 8) // 4


def _write_control(c: Caller, one: Socket, got: Received, room: int, flags: int) -> _Writer:
    """Write credentials if they were asked for, and take the files that were sent."""
    writer = _Writer(c, room)
    if one.options.pass_credentials and got.credentials is not None:
        known = got.credentials
        writer.add(_SCM_CREDENTIALS, _UCRED.pack(known.pid, known.uid, known.gid))
    if got.files:
        close = bool(flags & MSG_CMSG_CLOEXEC)
        taken = got.files[: writer.files_that_fit()]
        numbers = []
        for file in taken:
            try:
                numbers.append(c.process.files.add(file, close_on_exec=close))
            except LinuxError:
                break
        release(got.files)
        if numbers:
            writer.add(_SCM_RIGHTS, struct.pack(f"<{len(numbers)}i", *numbers))
        writer.cut = writer.cut or len(numbers) < len(got.files)
    return writer


def _recvmsg(c: Caller, fd: int, header: int, flags: int, *, deadline: int | None = None) -> Blocking:
    one = socket_of(c, fd)
    form = _HEADER[c.word]
    name, name_size, vector, count, control, control_size, _flags = form.unpack(c.read(header, form.size))
    if count > _MESSAGES_MAX:
        raise LinuxError(EMSGSIZE)
    places = vector_of(c, vector, count)
    got = yield from _receive(c, one, min(sum(size for _, size in places), _LARGEST), flags, deadline=deadline)
    scatter(c, got.data, places)
    writer = _write_control(c, one, got, control_size if control else 0, flags)
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
    step = _HEADER[c.word].size + c.word
    done = 0
    socket_of(c, fd)
    for index in range(min(count, _MESSAGES_MAX)):
        at = vector + index * step
        try:
            size = yield from _recvmsg(c, fd, at, flags & ~MSG_WAITFORONE, deadline=deadline)
        except LinuxError:
            if not done:
                raise
            break
        c.write(at + _HEADER[c.word].size, struct.pack("<I", size))
        done += 1
        if flags & MSG_WAITFORONE:
            flags |= MSG_DONTWAIT
        if deadline is not None and c.now() >= deadline:
            break
    return done


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
