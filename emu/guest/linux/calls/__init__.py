"""The system calls, by theme; importing this package fills the table."""

from __future__ import annotations

from emu.guest.linux.calls import compat, obsolete, sys_ni
from emu.guest.linux.calls.fs import (
    attr,
    eventfd,
    eventpoll,
    fs_struct,
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
    ioprio,
    kill,
    nsproxy,
    pid,
    pidfd,
    prctl,
    rlimit,
    rtmutex,
    sched,
    sigaction,
    sys,
    timer,
)
from emu.guest.linux.calls.mm import madvise, membarrier, mlock, mmap, mremap, mseal
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
    "fork_exec_wait",
    "fs_struct",
    "futex",
    "inotify",
    "ioctl",
    "ioprio",
    "kill",
    "locks",
    "madvise",
    "membarrier",
    "mlock",
    "mmap",
    "mqueue",
    "mremap",
    "mseal",
    "msg",
    "namei",
    "nsproxy",
    "obsolete",
    "open",
    "pid",
    "pidfd",
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
