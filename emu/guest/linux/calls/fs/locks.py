"""System calls that lock files: flock, and fcntl's records.  Source: Linux fs/locks.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, call
from emu.guest.linux.errno import EAGAIN, EBADF, EDEADLK, EINVAL, EOVERFLOW, LinuxError
from emu.guest.linux.fs.locks import FOREVER, NOBODY, FileLocks, LockRecord
from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.process.process import Wait

_LOCK_SH, _LOCK_EX, _LOCK_NB, _LOCK_UN, _LOCK_MAND = 1, 2, 4, 8, 32
_F_RDLCK, _F_WRLCK, _F_UNLCK = range(3)
_GET, _SET, _SET_AND_WAIT = range(3)
_F_GETLK: Final = 5
_F_GETLK64: Final = 12
_F_OFD_GETLK: Final = 36
# struct flock: type, whence, start, length, pid; by the bytes of a word, and flock64 of 32-bit programs.
_FLOCK: Final = {8: struct.Struct("<hh4xqqi4x"), 4: struct.Struct("<hhiii")}
_FLOCK64: Final = struct.Struct("<hhqqi")


@call("flock")
def flock(c: Caller, fd: Int, operation: Int) -> Blocking:
    """Lock a file as a whole, for everyone who shares this opening of it."""
    if operation & _LOCK_MAND:
        return 0  # mandatory locks are gone, and nothing else is looked at (fs/locks.c)
    kind = operation & ~_LOCK_NB
    if kind not in {_LOCK_SH, _LOCK_EX, _LOCK_UN}:
        raise LinuxError(EINVAL)
    file = c.file(fd)
    locks = file.inode.locks.whole
    wanted = LockRecord(file, c.process.pid, kind == _LOCK_EX)
    locks.remove(file)  # a change of kind is not atomic: the old lock is given back first
    if kind == _LOCK_UN:
        return 0
    while locks.conflict(wanted) is not None:
        if operation & _LOCK_NB:
            raise LinuxError(EAGAIN)
        yield Wait(lambda: locks.conflict(wanted) is None)
    if not file.users:  # it was closed meanwhile
        raise LinuxError(EBADF)
    locks.add(wanted)
    return 0


def is_record_command(command: int, word: int) -> bool:
    """Return whether fcntl's command is about records."""
    return _F_GETLK <= command <= _F_GETLK + _SET_AND_WAIT or _is_wide(command, word)


def _is_wide(command: int, word: int) -> bool:
    """Return whether a command takes struct flock64, also in 32-bit programs."""
    first = (_F_OFD_GETLK, _F_GETLK64) if word < 8 else (_F_OFD_GETLK,)
    return any(start <= command <= start + _SET_AND_WAIT for start in first)


def record(c: Caller, fd: int, command: int, address: Address) -> Blocking:
    """Execute one of fcntl's commands about record locks.  Raises `LinuxError`."""
    file = c.file(fd)
    form = _FLOCK64 if c.word < 8 and _is_wide(command, c.word) else _FLOCK[c.word]
    of_description = command >= _F_OFD_GETLK
    action = (command - (_F_OFD_GETLK if of_description else _F_GETLK64 if command >= _F_GETLK64 else _F_GETLK)) % 3
    kind, whence, start, length, pid = form.unpack(c.read(address, form.size))
    if of_description and pid:
        raise LinuxError(EINVAL)
    start, end = _range(file, whence, start, length)
    wanted = LockRecord(
        file if of_description else c.process.files,
        NOBODY if of_description else c.process.pid,
        kind == _F_WRLCK,
        start,
        end,
    )
    locks = file.inode.locks.records
    if action == _GET:
        if kind not in {_F_RDLCK, _F_WRLCK}:
            raise LinuxError(EINVAL)
        c.write(address, _described(form, locks.conflict(wanted), (whence, start, length, pid)))
        return 0
    if kind == _F_UNLCK:
        locks.remove(wanted.owner, start, end)
        return 0
    if kind not in {_F_RDLCK, _F_WRLCK}:
        raise LinuxError(EINVAL)
    if not (file.can_write if wanted.exclusive else file.can_read):
        raise LinuxError(EBADF)
    if action == _SET and locks.conflict(wanted) is not None:
        raise LinuxError(EAGAIN)
    if locks.conflict(wanted) is not None:
        yield from _wait(c, locks, wanted, check=not of_description)
    locks.add(wanted)
    return 0


def _wait(c: Caller, locks: FileLocks, wanted: LockRecord, *, check: bool) -> Blocking:
    """Wait until a lock can be granted.  Raises `LinuxError` EDEADLK."""
    waiters = c.kernel.lock_waiters
    try:
        while (blocker := locks.conflict(wanted)) is not None:
            if check and waiters.would_deadlock(wanted.owner, blocker):
                raise LinuxError(EDEADLK)
            waiters.begin(wanted.owner, lambda: locks.conflict(wanted))
            yield Wait(lambda: locks.conflict(wanted) is None)
    finally:
        waiters.end(wanted.owner)
    return 0


def _range(file: OpenFile, whence: int, start: int, length: int) -> tuple[int, int]:
    """Return the bytes that are meant.  Raises `LinuxError`: EINVAL, EOVERFLOW."""
    bases = (0, file.position, file.inode.size)
    if not 0 <= whence < len(bases):
        raise LinuxError(EINVAL)
    start += bases[whence]
    if length < 0:
        start, length = start + length, -length
    if start < 0:
        raise LinuxError(EINVAL)
    if start + length > FOREVER:
        raise LinuxError(EOVERFLOW)
    return start, start + length if length else FOREVER


def _described(form: struct.Struct, held: LockRecord | None, asked: tuple[int, ...]) -> bytes:
    """Return struct flock of a held lock; of what was asked if None."""
    if held is None:
        return form.pack(_F_UNLCK, *asked)
    length = 0 if held.end == FOREVER else held.end - held.start
    return form.pack(_F_WRLCK if held.exclusive else _F_RDLCK, 0, held.start, length, held.pid)
