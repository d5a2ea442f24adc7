"""The readiness of open files, for poll and epoll.

Source: Linux include/uapi/asm-generic/poll.h, include/uapi/linux/eventpoll.h (data only).
"""

from __future__ import annotations

from typing import Final, NamedTuple

POLLIN: Final = 0x1
POLLPRI: Final = 0x2
POLLOUT: Final = 0x4
POLLERR: Final = 0x8
POLLHUP: Final = 0x10
POLLNVAL: Final = 0x20
POLLRDNORM: Final = 0x40
POLLRDBAND: Final = 0x80
POLLWRNORM: Final = 0x100
POLLWRBAND: Final = 0x200
POLLMSG: Final = 0x400
POLLRDHUP: Final = 0x2000

# The events of most files: something can be read, and there is room to write.
READABLE: Final = POLLIN | POLLRDNORM
WRITABLE: Final = POLLOUT | POLLWRNORM
# The events that poll always reports.
ALWAYS: Final = POLLERR | POLLHUP
# The events of a file that makes no thread wait (DEFAULT_POLLMASK).
DEFAULT: Final = READABLE | WRITABLE
# The events that threads which wait to read, and to write, want to be told of.
FOR_READERS: Final = POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND | POLLMSG | POLLRDHUP
FOR_WRITERS: Final = POLLOUT | POLLWRNORM | POLLWRBAND
# The events that select calls readable, writable and exceptional (fs/select.c).
SELECT_READ: Final = POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR
SELECT_WRITE: Final = POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR
SELECT_EXCEPT: Final = POLLPRI


class Notices(NamedTuple):
    """The numbers of events about which the owner of a file gets signals."""

    input: int = 0
    room: int = 0
    hang_up: int = 0
