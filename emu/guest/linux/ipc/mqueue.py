"""Message queues of POSIX: files of a file system of their own, messages with a priority.

Source: Linux ipc/mqueue.c.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import READABLE, WRITABLE, AnonymousOpen
from emu.guest.linux.net.netlink import NetlinkSocket
from emu.guest.linux.process.cred import Credentials
from emu.isa.linux_signals import SI_MESGQ, SignalInfo
from emu.support.immutable import immutable

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Process

# The largest size of the text that is read from a queue; stat gives it (FILENT_SIZE).
_TEXT_SIZE: Final = 80
# sizeof (struct msg_msg) and of struct posix_msg_tree_node, which count against RLIMIT_MSGQUEUE.
_HEADER_SIZE: Final = 48
_NODE_SIZE: Final = 48
PRIORITIES: Final = 32768
# The default limits of a queue, which are also the largest without privilege.
MOST, LONGEST = 10, 8192
# Queues that there may be at one time, without privilege.
QUEUES_MAX: Final = 256
# Files of /proc/sys/fs/mqueue.
SETTINGS: Final = {
    "msg_default": MOST,
    "msg_max": MOST,
    "msgsize_default": LONGEST,
    "msgsize_max": LONGEST,
    "queues_max": QUEUES_MAX,
}
# Kinds of notification: a signal, none, a message to a netlink socket (SIGEV_THREAD).
NOTIFY_SIGNAL, NOTIFY_NONE, NOTIFY_THREAD = 0, 1, 2
# Bytes of that message; the last one says what has happened.
COOKIE_SIZE: Final = 32
_WOKEN, _REMOVED = 1, 2


class Letter(NamedTuple):
    """A message and its priority."""

    priority: int
    data: bytes


@dataclass(slots=True, eq=False)
class Reader:
    """A thread that waits for a message."""

    got: Letter | None = None


@immutable
class Notice:
    """The process that is notified once when a message arrives in the empty queue."""

    process: Process
    kind: int
    signal: int
    value: int
    socket: NetlinkSocket | None = None
    """The destination of a message, for the kinds that send one."""
    cookie: bytes = b""

    def tell(self, what: int) -> None:
        """Send the message, if there is one."""
        if self.socket is not None:
            self.socket.tell(self.cookie[:-1] + bytes((what,)))


class QueueInode(Inode):
    """A queue."""

    kind = stat.S_IFREG

    def __init__(self, kernel: Kernel, permissions: int, most: int, longest: int, credentials: Credentials) -> None:
        super().__init__(permissions, kernel.wall())
        self._kernel = kernel
        self.most = most
        """Messages that it holds."""
        self.longest = longest
        """Bytes of one message."""
        self.letters: list[Letter] = []
        """The one that is taken next in front."""
        self.readers: list[Reader] = []
        self.notice: Notice | None = None
        self.writers: list[object] = []
        """The threads that wait for space, the first in front."""
        self.owner = credentials.user.real

    @property
    def size(self) -> int:
        """The size that stat reports."""
        return _TEXT_SIZE

    @property
    def memory(self) -> int:
        """Bytes that count against its user's limit."""
        return memory_of(self.most, self.longest)

    def has_space(self) -> bool:
        """Return whether a message can be sent."""
        return len(self.letters) < self.most

    def send(self, letter: Letter, sender: Process) -> None:
        """Give a message to the first who waits for one, or keep it."""
        if self.readers:
            self.readers.pop(0).got = letter
            return
        index = next(
            (index for index, one in enumerate(self.letters) if one.priority < letter.priority), len(self.letters)
        )
        self.letters.insert(index, letter)
        if len(self.letters) == 1 and self.notice is not None:
            notice, self.notice = self.notice, None
            notice.tell(_WOKEN)
            if notice.kind == NOTIFY_SIGNAL and notice.signal:
                info = SignalInfo(
                    notice.signal, SI_MESGQ, pid=sender.pid, uid=sender.credentials.user.real, value=notice.value
                )
                self._kernel.sending.send(notice.process, info)

    def forget_notice(self) -> None:
        """Forget who wanted to be told."""
        notice, self.notice = self.notice, None
        if notice is not None:
            notice.tell(_REMOVED)

    def text(self) -> bytes:
        """Return what is read from it as a file."""
        used = sum(len(letter.data) for letter in self.letters)
        notice = self.notice
        kind, signal, pid = (0, 0, 0) if notice is None else (notice.kind, notice.signal, notice.process.pid)
        signal = signal if kind == NOTIFY_SIGNAL else 0
        return f"QSIZE:{used:<10} NOTIFY:{kind:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n".encode()


def memory_of(most: int, longest: int) -> int:
    """Return what a queue counts against RLIMIT_MSGQUEUE."""
    return most * (_HEADER_SIZE + longest) + min(most, PRIORITIES) * _NODE_SIZE


class QueueOpen(AnonymousOpen):
    """An open queue."""

    inode: QueueInode

    def __init__(self, inode: QueueInode, flags: int, path: str, process: Process) -> None:
        super().__init__(inode, flags, path)
        self._process = process

    def events(self) -> int:
        """Return what poll says."""
        return (READABLE if self.inode.letters else 0) | (WRITABLE if self.inode.has_space() else 0)

    def read_ready(self) -> bool:
        """Return whether reading the text would not wait: it never does."""
        return True

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read the text that tells about the queue."""
        start = self.position if offset is None else offset
        data = self.inode.text()[start : start + size]
        if offset is None:
            self.position += len(data)
        return data

    def closed(self) -> None:
        """Remove the notification that its opener has registered."""
        notice = self.inode.notice
        if notice is not None and notice.process is self._process:
            self.inode.forget_notice()
