"""The system calls, by theme; importing this package fills the table."""

from __future__ import annotations

from emu.guest.linux.calls import compat, obsolete, sys_ni
from emu.guest.linux.calls.fs import (
    attr,
    eventfd,
    eventpoll,
    fcntl,
    inotify,
    ioctl,
    locks,
    namei,
    open,  # noqa: A004  as Linux names the file
    read_write,
    select,
    splice,
    stat,
    sync,
    xattr,
)
from emu.guest.linux.calls.ipc import mqueue, msg, sem, shm
from emu.guest.linux.calls.kernel import (
    clock,
    cred,
    fork_exec_wait,
    futex,
    kill,
    nsproxy,
    pid,
    prctl,
    rlimit,
    rtmutex,
    sched,
    sigaction,
    sys,
    timer,
)
from emu.guest.linux.calls.mm import madvise, mlock, mmap, mremap
from emu.guest.linux.calls.net import sendmsg, socket, sockopt
from emu.guest.linux.calls.table import HANDLERS, bound

compat.enter()

__all__ = [
    "HANDLERS",
    "attr",
    "bound",
    "clock",
    "compat",
    "cred",
    "eventfd",
    "eventpoll",
    "fcntl",
    "fork_exec_wait",
    "futex",
    "inotify",
    "ioctl",
    "kill",
    "locks",
    "madvise",
    "mlock",
    "mmap",
    "mqueue",
    "mremap",
    "msg",
    "namei",
    "nsproxy",
    "obsolete",
    "open",
    "pid",
    "prctl",
    "read_write",
    "rlimit",
    "rtmutex",
    "sched",
    "select",
    "sem",
    "sendmsg",
    "shm",
    "sigaction",
    "socket",
    "sockopt",
    "splice",
    "stat",
    "sync",
    "sys",
    "sys_ni",
    "timer",
    "xattr",
]
