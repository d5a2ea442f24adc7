"""System calls about message queues of System V.  Source: Linux ipc/msg.c, ipc/syscall.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.ipc.ipc_util import IPC_64, Command, owner_size, packed_owner, read_owner
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Long, Size, Unsigned, call
from emu.guest.linux.errno import EAGAIN, EINVAL, ENOMSG, EPERM, LinuxError
from emu.guest.linux.ipc.msg import (
    COPY,
    EXCEPT,
    MESSAGE_MAX,
    QUEUE_BYTES,
    QUEUES_MAX,
    Message,
    MessageQueue,
    Receiver,
    Sender,
)
from emu.guest.linux.ipc.util import NOWAIT
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Wait

_MSG_STAT, _MSG_INFO, _MSG_STAT_ANY = 11, 12, 13
# struct msginfo: pool, map, bytes of a message, of a queue, queues, bytes of a segment, messages, segments.
_INFO: Final = struct.Struct("<7iHxx")
_SEGMENT: Final = 16
_SEGMENTS: Final = 0xFFFF
_POOL: Final = QUEUES_MAX * QUEUE_BYTES // 1024


@call("msgget")
def msgget(c: Caller, key: Int, flags: Unsigned) -> int:
    """Find a queue, or make one."""
    table, credentials = c.kernel.message_queues.table, c.process.credentials
    found = table.wanted(key, flags)
    if found is None:
        uid, gid = credentials.user.effective, credentials.group.effective
        changed = c.kernel.wall() // 1_000_000_000
        owner = (uid, gid)
        return table.add(
            MessageQueue(key=key, permissions=flags & 0o777, uid=uid, gid=gid, maker=owner, changed=changed)
        )
    found.check(credentials, (flags >> 6 | flags >> 3 | flags) & 7)
    return found.number


@call("msgsnd")
def msgsnd(c: Caller, number: Int, buffer: Address, size: Size, flags: Unsigned) -> Blocking:
    """Send a message, and wait until the queue has space."""
    (kind,) = c.longs(buffer, 1)
    if size > MESSAGE_MAX or number < 0 or kind < 1:
        raise LinuxError(EINVAL)
    message = Message(kind, c.read(buffer + c.word, size))
    queues = c.kernel.message_queues
    queue = queues.table.get(number)
    queue.check(c.process.credentials, 2)
    if not queue.has_space(message) or queue.senders:
        if flags & NOWAIT:
            raise LinuxError(EAGAIN)
        sender = Sender(message)
        queue.senders.append(sender)
        try:
            yield Wait(lambda: bool(sender.error) or (queue.senders[0] is sender and queue.has_space(message)))
        finally:
            if not sender.error:
                queue.senders.remove(sender)
        if sender.error:
            raise LinuxError(sender.error)
    queues.send(queue, message, c.process.pid)
    return 0


@call("msgrcv")
def msgrcv(c: Caller, number: Int, buffer: Address, size: Size, kind: Long, flags: Unsigned) -> Blocking:
    """Receive a message, and wait until there is one."""
    if number < 0 or size >> 8 * c.word - 1:
        raise LinuxError(EINVAL)
    if flags & COPY and (flags & EXCEPT or not flags & NOWAIT):
        raise LinuxError(EINVAL)
    queues = c.kernel.message_queues
    queue = queues.table.get(number)
    queue.check(c.process.credentials, 4)
    receiver = Receiver(kind, size, flags, c.process.pid)
    message = queues.receive(queue, receiver)
    if message is None:
        if flags & NOWAIT:
            raise LinuxError(ENOMSG)
        queue.receivers.append(receiver)
        try:
            yield Wait(lambda: receiver.done)
        finally:
            if not receiver.done:
                queue.receivers.remove(receiver)
        if receiver.error:
            raise LinuxError(receiver.error)
        message = receiver.got
        assert message is not None
    data = message.data[:size]
    c.write_words(buffer, message.kind)
    c.write(buffer + c.word, data)
    return len(data)


@call("msgctl")
def msgctl(c: Caller, number: Int, command: Int, buffer: Address) -> int:
    """Describe a queue, change its owner, or remove it."""
    if number < 0:
        raise LinuxError(EINVAL)
    command &= ~IPC_64
    queues, credentials = c.kernel.message_queues, c.process.credentials
    table = queues.table
    if command in {Command.INFO, _MSG_INFO}:
        pool, maps, messages = _POOL, QUEUE_BYTES, QUEUE_BYTES
        if command == _MSG_INFO:
            pool, maps = len(table), sum(len(one.messages) for one in table)
            messages = sum(one.used for one in table)
        fields = (pool, maps, MESSAGE_MAX, QUEUE_BYTES, QUEUES_MAX, _SEGMENT, messages, _SEGMENTS)
        c.write(buffer, _INFO.pack(*fields))
        return table.highest
    if command in {Command.STAT, _MSG_STAT, _MSG_STAT_ANY}:
        found = table.get(number) if command == Command.STAT else table.at(number)
        if command != _MSG_STAT_ANY:
            found.check(credentials, 4)
        c.write(buffer, _described(c, found))
        return 0 if command == Command.STAT else found.number
    if command not in {Command.RMID, Command.SET}:
        raise LinuxError(EINVAL)
    owner = limit = None
    if command == Command.SET:
        owner, limit = read_owner(c, buffer), _read_limit(c, buffer)
    found = table.get(number)
    found.check_owner(credentials)
    if owner is None or limit is None:
        queues.remove(found)
        return 0
    if limit > QUEUE_BYTES and not credentials.can(Capability.SYS_RESOURCE):
        raise LinuxError(EPERM)
    found.uid, found.gid, found.permissions = owner
    found.limit, found.changed = limit, c.kernel.wall() // 1_000_000_000
    return 0


def _read_limit(c: Caller, address: int) -> int:
    """Return msg_qbytes: after the owner, three times (of two words in 32 bits), and two words."""
    return c.number(address + owner_size(c) + (5 * 8 if c.word == 8 else 8 * 4), c.word)


def _described(c: Caller, found: MessageQueue) -> bytes:
    """Return struct msqid64_ds."""
    times = (found.sent, found.received, found.changed)
    counts = (found.used, len(found.messages), found.limit)
    pids = (found.last_sender, found.last_receiver)
    if c.word == 4:
        halves = [half for time in times for half in (time & 0xFFFF_FFFF, time >> 32)]
        return packed_owner(c, found) + struct.pack("<9I2i8x", *halves, *counts, *pids)
    return packed_owner(c, found) + struct.pack("<6Q2i16x", *times, *counts, *pids)
