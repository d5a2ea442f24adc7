"""Message queues of System V: messages with a type, by which they are taken.

Source: Linux ipc/msg.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from emu.guest.linux.errno import E2BIG, EIDRM, LinuxError
from emu.guest.linux.ipc.util import IpcObject, Table

# Queues that there may be at one time, bytes of one message, bytes of one queue (MSGMNI, MSGMAX, MSGMNB).
QUEUES_MAX: Final = 32000
MESSAGE_MAX: Final = 8192
QUEUE_BYTES: Final = 16384
# Flags of msgrcv: cut what is too long; take any other type; copy the message at an index.
NOERROR, EXCEPT, COPY = 0o10000, 0o20000, 0o40000


class Message(NamedTuple):
    """A message and its type, which is above 0."""

    kind: int
    data: bytes


@dataclass(slots=True, eq=False)
class Receiver:
    """A request to receive a message, and its result."""

    kind: int
    """The type; 0: any; below 0: the lowest up to its absolute value."""
    size: int
    flags: int
    pid: int
    got: Message | None = None
    error: int = 0

    def fits(self, message: Message) -> bool:
        """Return whether a message is of a type that was asked for."""
        if not self.kind:
            return True
        if self.kind < 0:
            return message.kind <= -self.kind
        return (message.kind != self.kind) == bool(self.flags & EXCEPT)

    def too_long(self, message: Message) -> bool:
        """Return whether a message is larger than the buffer, and may not be cut."""
        return len(message.data) > self.size and not self.flags & NOERROR

    @property
    def done(self) -> bool:
        """Whether it waits no longer."""
        return self.got is not None or bool(self.error)


@dataclass(slots=True, eq=False)
class Sender:
    """A message that waits for space in the queue."""

    message: Message
    error: int = 0


@dataclass(eq=False, kw_only=True)
class MessageQueue(IpcObject):
    """A queue (struct msg_queue)."""

    limit: int = QUEUE_BYTES
    """The most bytes that it holds (msg_qbytes)."""
    messages: list[Message] = field(default_factory=list)
    senders: list[Sender] = field(default_factory=list)
    receivers: list[Receiver] = field(default_factory=list)
    last_sender: int = 0
    last_receiver: int = 0
    sent: int = 0
    """The time of the last message sent, in seconds since 1970."""
    received: int = 0

    @property
    def used(self) -> int:
        """Bytes of all messages (msg_cbytes)."""
        return sum(len(message.data) for message in self.messages)

    def has_space(self, message: Message) -> bool:
        """Return whether a message can be sent."""
        return self.used + len(message.data) <= self.limit and len(self.messages) < self.limit

    def find(self, receiver: Receiver) -> Message | None:
        """Return the message that a receiver gets."""
        if receiver.flags & COPY:
            return self.messages[receiver.kind] if 0 <= receiver.kind < len(self.messages) else None
        fitting = [message for message in self.messages if receiver.fits(message)]
        return min(fitting, key=lambda message: message.kind, default=None) if receiver.kind < 0 else next(
            iter(fitting), None
        )  # fmt: skip


class MessageQueues:
    """All queues of one kernel."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self.table: Table[MessageQueue] = Table(QUEUES_MAX)

    def _now(self) -> int:
        return self._wall() // 1_000_000_000

    def send(self, queue: MessageQueue, message: Message, pid: int) -> None:
        """Give a message to the first receiver that waits for it, or put it into the queue."""
        queue.last_sender, queue.sent = pid, self._now()
        for receiver in list(queue.receivers):
            if not receiver.fits(message):
                continue
            queue.receivers.remove(receiver)
            if receiver.too_long(message):
                receiver.error = E2BIG
                continue
            receiver.got = message
            queue.last_receiver, queue.received = receiver.pid, self._now()
            return
        queue.messages.append(message)

    def receive(self, queue: MessageQueue, receiver: Receiver) -> Message | None:
        """Take a message out, or look at it; None if there is none.  Raises `LinuxError` E2BIG."""
        message = queue.find(receiver)
        if message is None:
            return None
        if receiver.too_long(message):
            raise LinuxError(E2BIG)
        if not receiver.flags & COPY:
            index = next(index for index, one in enumerate(queue.messages) if one is message)
            del queue.messages[index]
            queue.last_receiver, queue.received = receiver.pid, self._now()
        return message

    def remove(self, queue: MessageQueue) -> None:
        """Remove a queue; waiting threads get an error."""
        self.table.remove(queue)
        for sender in queue.senders:
            sender.error = EIDRM
        for receiver in queue.receivers:
            receiver.error = EIDRM
        queue.senders.clear()
        queue.receivers.clear()
