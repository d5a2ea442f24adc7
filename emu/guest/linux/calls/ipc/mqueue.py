"""System calls about message queues of POSIX.  Source: Linux ipc/mqueue.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.select import duration
from emu.guest.linux.calls.net.socket import socket_of
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Path, Size, Unsigned, call
from emu.guest.linux.errno import (
    EACCES,
    EAGAIN,
    EBADF,
    EBUSY,
    EEXIST,
    EINVAL,
    EMFILE,
    EMSGSIZE,
    ENOENT,
    ENOSPC,
    EPERM,
    ETIMEDOUT,
    LinuxError,
)
from emu.guest.linux.fs.open_file import O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK
from emu.guest.linux.ipc.mqueue import (
    COOKIE_SIZE,
    LONGEST,
    MOST,
    NOTIFY_NONE,
    NOTIFY_SIGNAL,
    NOTIFY_THREAD,
    PRIORITIES,
    QUEUES_MAX,
    Letter,
    Notice,
    QueueInode,
    QueueOpen,
    Reader,
    memory_of,
)
from emu.guest.linux.net.netlink import NetlinkSocket
from emu.guest.linux.process.cred import READ, SEARCH, WRITE, Capability
from emu.guest.linux.process.process import Wait
from emu.guest.linux.process.rlimit import INFINITE
from emu.isa.linux_signals import LAST

# The most that may be asked for with privilege (HARD_MSGMAX, HARD_MSGSIZEMAX).
_MOST_EVER, _LONGEST_EVER = 65536, 16 << 20
_MSGQUEUE: Final = 12
_WANTED: Final = (READ, WRITE, READ | WRITE)


def _queue(c: Caller, fd: int) -> QueueOpen:
    file = c.file(fd)
    if not isinstance(file, QueueOpen):
        raise LinuxError(EBADF)
    return file


def _name(name: str) -> str:
    """Return the name of a queue: in the file system there is one directory.  Raises `LinuxError`."""
    if "/" in name:
        raise LinuxError(EACCES)
    if not name or name in {".", ".."}:
        raise LinuxError(ENOENT if not name else EACCES)
    return name


def _made(c: Caller, mode: int, attributes: int) -> QueueInode:
    """Return a new queue.  Raises `LinuxError`: EINVAL, EMFILE, ENOSPC."""
    most, longest = MOST, LONGEST
    credentials = c.process.credentials
    if attributes:
        _flags, most, longest, _used = c.longs(attributes, 4)
        limits = (MOST, LONGEST)
        if credentials.can(Capability.SYS_RESOURCE):
            limits = (_MOST_EVER, _LONGEST_EVER)
        if most <= 0 or longest <= 0 or most > limits[0] or longest > limits[1]:
            raise LinuxError(EINVAL)
    limit = c.process.limits[_MSGQUEUE].soft
    if len(c.kernel.posix_queues.entries()) >= QUEUES_MAX and not credentials.can(Capability.SYS_RESOURCE):
        raise LinuxError(ENOSPC)
    queues = [one for one in c.kernel.posix_queues.entries().values() if isinstance(one, QueueInode)]
    used = sum(one.memory for one in queues if one.owner == credentials.user.real)
    if limit != INFINITE and used + memory_of(most, longest) > limit:
        raise LinuxError(EMFILE)
    permissions = mode & 0o7777 & ~c.process.surroundings.umask
    inode = QueueInode(c.kernel, permissions, most, longest, credentials)
    credentials.give(inode)
    return inode


@call("mq_open")
def mq_open(c: Caller, name: Path, flags: Int, mode: Unsigned, attributes: Address) -> int:
    """Open a queue; create it if O_CREAT is set."""
    directory, known = c.kernel.posix_queues, _name(name)
    inode = directory.get(known)
    if inode is None:
        if not flags & O_CREAT:
            raise LinuxError(ENOENT)
        c.need(directory, WRITE | SEARCH)
        inode = _made(c, mode, attributes)
        directory.add(known, inode)
    else:
        if flags & O_CREAT and flags & O_EXCL:
            raise LinuxError(EEXIST)
        if flags & O_ACCMODE == O_ACCMODE:
            raise LinuxError(EINVAL)
        c.need(inode, _WANTED[flags & O_ACCMODE])
    assert isinstance(inode, QueueInode)
    file = QueueOpen(inode, flags & (O_ACCMODE | O_NONBLOCK), f"/dev/mqueue/{known}", c.process)
    return c.process.files.add(file, close_on_exec=True)


@call("mq_unlink")
def mq_unlink(c: Caller, name: Path) -> int:
    """Remove the name of a queue; the queue is freed when it is closed for the last time."""
    directory, known = c.kernel.posix_queues, _name(name)
    inode = directory.get(known)
    if inode is None:
        raise LinuxError(ENOENT)
    c.need(directory, WRITE | SEARCH)
    if not c.process.credentials.may_remove(directory, inode):
        raise LinuxError(EPERM)
    directory.remove(known)
    return 0


def _until(c: Caller, timeout: int) -> int | None:
    """Return the virtual time at which a wait is over; None: never.  Raises `LinuxError` EINVAL."""
    limit = duration(c, timeout)
    return None if limit is None else limit - (c.kernel.wall() - c.now())


@call("mq_timedsend")
def mq_timedsend(c: Caller, fd: Int, buffer: Address, size: Size, priority: Unsigned, timeout: Address) -> Blocking:
    """Send a message, and wait until the queue has space."""
    if priority >= PRIORITIES:
        raise LinuxError(EINVAL)
    until = _until(c, timeout)
    file = _queue(c, fd)
    queue = file.inode
    if not file.can_write:
        raise LinuxError(EBADF)
    if size > queue.longest:
        raise LinuxError(EMSGSIZE)
    letter = Letter(priority, c.read(buffer, size))
    if not queue.has_space():
        if file.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        turn = object()
        queue.writers.append(turn)
        try:
            if not (yield Wait(lambda: queue.has_space() and queue.writers[0] is turn, until)):
                raise LinuxError(ETIMEDOUT)
        finally:
            queue.writers.remove(turn)
    queue.send(letter, c.process)
    file.arrivals += 1
    queue.modified = queue.changed = c.kernel.wall()
    return 0


@call("mq_timedreceive")
def mq_timedreceive(c: Caller, fd: Int, buffer: Address, size: Size, priority: Address, timeout: Address) -> Blocking:
    """Receive the first message of the highest priority, and wait until there is one."""
    until = _until(c, timeout)
    file = _queue(c, fd)
    queue = file.inode
    if not file.can_read:
        raise LinuxError(EBADF)
    if size < queue.longest:
        raise LinuxError(EMSGSIZE)
    if queue.letters:
        letter = queue.letters.pop(0)
    else:
        if file.flags & O_NONBLOCK:
            raise LinuxError(EAGAIN)
        reader = Reader()
        queue.readers.append(reader)
        try:
            if not (yield Wait(lambda: reader.got is not None, until)):
                raise LinuxError(ETIMEDOUT)
        finally:
            if reader.got is None:
                queue.readers.remove(reader)
        assert reader.got is not None
        letter = reader.got
    file.departures += 1
    queue.accessed = c.kernel.wall()
    c.write(buffer, letter.data)
    if priority:
        c.write(priority, struct.pack("<I", letter.priority))
    return len(letter.data)


@call("mq_notify")
def mq_notify(c: Caller, fd: Int, event: Address) -> int:
    """Ask to be told once when a message comes into the empty queue, or no longer.

    For a thread (SIGEV_THREAD) the C library reads a cookie from a netlink socket.
    """
    kind, signal, value = NOTIFY_NONE, 0, 0
    socket: NetlinkSocket | None = None
    cookie = b""
    if event:
        value = c.number(event, c.word)
        signal, kind = struct.unpack("<ii", c.read(event + c.word, 8))
        known_kind = kind in {NOTIFY_SIGNAL, NOTIFY_NONE, NOTIFY_THREAD}
        if not known_kind or (kind == NOTIFY_SIGNAL and not 0 <= signal <= LAST):
            raise LinuxError(EINVAL)
        if kind == NOTIFY_THREAD:
            cookie = c.read(value, COOKIE_SIZE)
            found = socket_of(c, signal)
            if not isinstance(found, NetlinkSocket):
                raise LinuxError(EINVAL)
            socket = found
    queue = _queue(c, fd).inode
    known = queue.notice
    if not event:
        if known is not None and known.process is c.process:
            queue.forget_notice()
        return 0
    if known is not None and known.process.alive:
        raise LinuxError(EBUSY)
    queue.notice = Notice(c.process, kind, signal, value, socket, cookie)
    return 0


@call("mq_getsetattr")
def mq_getsetattr(c: Caller, fd: Int, new: Address, old: Address) -> int:
    """Describe a queue, and set whether it makes its users wait."""
    flags = c.longs(new, 1)[0] if new else None
    if flags is not None and flags & ~O_NONBLOCK:
        raise LinuxError(EINVAL)
    file = _queue(c, fd)
    queue = file.inode
    before = (file.flags & O_NONBLOCK, queue.most, queue.longest, len(queue.letters), 0, 0, 0, 0)
    if flags is not None:
        file.flags = file.flags & ~O_NONBLOCK | flags
    if old:
        c.write_words(old, *before)
    return 0
