"""/proc/sysvipc: the objects of System V as tables, and the settings that limit them.

Source: Linux ipc/shm.c, sem.c, msg.c (the proc_show functions);
Documentation/admin-guide/sysctl/kernel.rst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Generated
from emu.guest.linux.ipc import msg, sem, shm

if TYPE_CHECKING:
    from emu.guest.linux.ipc.util import IpcObject
    from emu.guest.linux.kernel import Kernel

_LARGEST: Final = (1 << 64) - (1 << 24) - 1
# Files of /proc/sys/kernel.
SETTINGS: Final = {
    "shmmax": str(_LARGEST),
    "shmall": str(_LARGEST),
    "shmmni": str(shm.SEGMENTS_MAX),
    "sem": f"{sem.SET_SIZE_MAX}\t{sem.SETS_MAX * sem.SET_SIZE_MAX}\t{sem.OPERATIONS_MAX}\t{sem.SETS_MAX}",
    "msgmax": str(msg.MESSAGE_MAX),
    "msgmnb": str(msg.QUEUE_BYTES),
    "msgmni": str(msg.QUEUES_MAX),
}
_OWNERS: Final = "  uid   gid  cuid  cgid"


def directory(kernel: Kernel) -> Directory:
    """Return /proc/sysvipc of a kernel."""
    made = Directory(0o555)
    tables: dict[str, Callable[[], str]] = {
        "shm": lambda: _segments(kernel),
        "sem": lambda: _semaphores(kernel),
        "msg": lambda: _queues(kernel),
    }
    for name, content in tables.items():
        made.add(name, Generated(lambda content=content: content().encode()))  # type: ignore[misc]
    return made


def _head(one: IpcObject, mode: int = 0) -> str:
    return f"{one.key:10} {one.number:10}  {one.permissions | mode:4o}"


def _owners(one: IpcObject) -> str:
    return " ".join(f"{number:5}" for number in (one.uid, one.gid, *one.maker))


def _segments(kernel: Kernel) -> str:
    segments = kernel.segments
    segments.sweep()
    text = f"       key      shmid perms                  size  cpid  lpid nattch {_OWNERS}"
    text += "      atime      dtime      ctime                   rss                  swap\n"
    for one in segments.table:
        text += (
            f"{_head(one, shm.DESTROYED if one.destroyed else 0)} {one.size:21} {one.maker_pid:5} "
            f"{one.last_pid:5}  {segments.users(one):5} {_owners(one)} {one.attached:10} {one.detached:10} "
            f"{one.changed:10} {one.memory.resident * PAGE:21} {0:21}\n"
        )
    return text


def _semaphores(kernel: Kernel) -> str:
    text = f"       key      semid perms      nsems {_OWNERS}      otime      ctime\n"
    for one in kernel.semaphores.table:
        text += f"{_head(one)} {len(one.values):10} {_owners(one)} {one.operated:10} {one.changed:10}\n"
    return text


def _queues(kernel: Kernel) -> str:
    text = (
        f"       key      msqid perms      cbytes       qnum lspid lrpid {_OWNERS}      stime      rtime      ctime\n"
    )
    for one in kernel.message_queues.table:
        text += (
            f"{_head(one)}  {one.used:10} {len(one.messages):10} {one.last_sender:5} {one.last_receiver:5} "
            f"{_owners(one)} {one.sent:10} {one.received:10} {one.changed:10}\n"
        )
    return text
