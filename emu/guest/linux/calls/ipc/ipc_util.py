"""The common part of the system calls for all three kinds of System V objects.

Source: Linux ipc/util.c, include/uapi/asm-generic/ipcbuf.h.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from emu.guest.linux.calls.table import HANDLERS, Caller
from emu.guest.linux.errno import EINVAL, ENOSYS, LinuxError
from emu.guest.linux.ipc.util import IpcObject

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import SystemCall, Thread

# 32-bit programs say with it that they know the structures with more bits; the others always do.
IPC_64: Final = 0x100
# struct ipc64_perm by the bytes of a word: key, uid, gid, of the maker, mode, sequence, two unused words.
_OWNER: Final = {8: struct.Struct("<iIIIIIHxx4xQQ"), 4: struct.Struct("<iIIIIHxxHxxII")}


class Command(IntEnum):
    """The commands of all three kinds of objects (include/uapi/linux/ipc.h)."""

    RMID = 0
    SET = 1
    STAT = 2
    INFO = 3


def packed_owner(c: Caller, one: IpcObject, mode: int = 0) -> bytes:
    """Return struct ipc64_perm; `mode` is added to the permissions."""
    return _OWNER[c.word].pack(
        one.key, one.uid, one.gid, *one.maker, one.permissions | mode, one.sequence & 0xFFFF, 0, 0
    )


def read_owner(c: Caller, address: int) -> tuple[int, int, int]:
    """Return the user, the group and the permissions that IPC_SET gives."""
    form = _OWNER[c.word]
    _key, uid, gid, _, _, mode, *_ = form.unpack(c.read(address, form.size))
    return uid, gid, mode & 0o777


def owner_size(c: Caller) -> int:
    """Return the size of struct ipc64_perm."""
    return _OWNER[c.word].size


# -- i386 makes all of them through one call


# The calls by the number that ipc takes, and where their arguments stand among the first, second and third number, the
# pointer, and the fifth (ipc/syscall.c).
_FIRST, _SECOND, _THIRD, _POINTER, _FIFTH = range(1, 6)
_BY_NUMBER: Final = {
    1: ("semop", (_FIRST, _POINTER, _SECOND)),
    2: ("semget", (_FIRST, _SECOND, _THIRD)),
    3: ("semctl", (_FIRST, _SECOND, _THIRD, _POINTER)),
    4: ("semtimedop", (_FIRST, _POINTER, _SECOND, _FIFTH)),
    11: ("msgsnd", (_FIRST, _POINTER, _SECOND, _THIRD)),
    12: ("msgrcv", (_FIRST, _POINTER, _SECOND, _FIFTH, _THIRD)),
    13: ("msgget", (_FIRST, _SECOND)),
    14: ("msgctl", (_FIRST, _SECOND, _POINTER)),
    21: ("shmat", (_FIRST, _POINTER, _SECOND)),
    22: ("shmdt", (_POINTER,)),
    23: ("shmget", (_FIRST, _SECOND, _THIRD)),
    24: ("shmctl", (_FIRST, _SECOND, _POINTER)),
}


def ipc(kernel: Kernel, thread: Thread, arguments: list[int]) -> int | SystemCall | None:
    """Make a call of System V objects by its number.  Raises `LinuxError`: ENOSYS, EINVAL."""
    c = Caller(kernel, thread)
    number, version = arguments[0] & 0xFFFF, arguments[0] >> 16 & 0xFFFF
    if number not in _BY_NUMBER:
        raise LinuxError(ENOSYS)
    name, indexes = _BY_NUMBER[number]
    words = list(arguments)
    if name == "semctl":  # the pointer is one to the argument
        if not words[_POINTER]:
            raise LinuxError(EINVAL)
        words[_POINTER] = c.number(words[_POINTER], c.word)
    elif name == "msgrcv" and not version:  # the pointer is one to the buffer and the type
        if not words[_POINTER]:
            raise LinuxError(EINVAL)
        words[_POINTER], words[_FIFTH] = c.words(words[_POINTER], 2)
    elif name == "shmat" and version == 1:
        raise LinuxError(EINVAL)
    result = HANDLERS[name](kernel, thread, [words[index] for index in indexes])
    if name == "shmat" and isinstance(result, int):
        c.write_words(words[_THIRD], result)
        return 0
    return result
