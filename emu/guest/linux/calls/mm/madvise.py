"""System calls that take advice about memory.  Source: Linux mm/madvise.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.calls.kernel.pid import process_file
from emu.guest.linux.calls.mm.vm_ranges import end_of, parts
from emu.guest.linux.calls.obsolete import vector_of
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EACCES, EFAULT, EINVAL, ENOMEM, EPERM, ESRCH, LinuxError
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.address_space import Area, Mark, SharedMemory
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Process

_DONTNEED, _FREE, _REMOVE, _DONTFORK, _DOFORK = 4, 8, 9, 10, 11
_WIPEONFORK, _KEEPONFORK, _COLD, _PAGEOUT, _POPULATE_READ, _POPULATE_WRITE, _DONTNEED_LOCKED = range(18, 25)
_WILLNEED: Final = 3
# Advice that changes what a program reads: not for sealed memory that it cannot write.
_DISCARDS: Final = frozenset({_DONTNEED, _DONTNEED_LOCKED, _FREE, _REMOVE, _DONTFORK, _WIPEONFORK})

_Follow: TypeAlias = Callable[[Process, Area], None]


def _is_anonymous(area: Area) -> bool:
    return area.backing is None and not area.shared


def _need_unlocked(area: Area) -> None:
    if Mark.LOCKED in area.marks:
        raise LinuxError(EINVAL)


def _drop(process: Process, area: Area) -> None:
    if not area.shared:
        process.space.drop(area.start, area.end)


def _drop_unlocked(process: Process, area: Area) -> None:
    _need_unlocked(area)
    _drop(process, area)


def _free(_process: Process, area: Area) -> None:
    """Leave the pages: they may be freed, and memory is not short."""
    if not _is_anonymous(area):
        raise LinuxError(EINVAL)
    _need_unlocked(area)


def _remove(_process: Process, area: Area) -> None:
    """Make a hole in the file, or zeros of the memory, that is shared."""
    _need_unlocked(area)
    if area.backing is None:
        raise LinuxError(EINVAL)
    if not area.shared or not area.may_write:
        raise LinuxError(EACCES)
    end = area.offset + area.end - area.start
    if isinstance(area.backing, (RegularFile, SharedMemory)):
        area.backing.clear(area.offset, end)


def _wipe_on_fork(process: Process, area: Area) -> None:
    if not _is_anonymous(area):
        raise LinuxError(EINVAL)
    process.space.mark(area.start, area.end, give=Mark.WIPED_IN_CHILD)


def _take_no_notice(_process: Process, _area: Area) -> None:
    """Ignore the advice; it affects only the speed of a real machine."""


def _take_notice_of_locks(_process: Process, area: Area) -> None:
    _need_unlocked(area)


# Advice by number (include/uapi/asm-generic/mman-common.h), and what is done about each part of the memory.
# MADV_HWPOISON, MADV_SOFT_OFFLINE and MADV_COLLAPSE are missing, as in a kernel without these parts.
_ADVICE: Final[dict[int, _Follow]] = {
    **dict.fromkeys((0, 1, 2, _WILLNEED, 12, 13, 14, 15, 16, 17), _take_no_notice),
    _DONTNEED: _drop_unlocked,
    _DONTNEED_LOCKED: _drop,
    _FREE: _free,
    _REMOVE: _remove,
    _DONTFORK: lambda process, area: process.space.mark(area.start, area.end, give=Mark.NOT_IN_CHILD),
    _DOFORK: lambda process, area: process.space.mark(area.start, area.end, take=Mark.NOT_IN_CHILD),
    _WIPEONFORK: _wipe_on_fork,
    _KEEPONFORK: lambda process, area: process.space.mark(area.start, area.end, take=Mark.WIPED_IN_CHILD),
    _COLD: _take_notice_of_locks,
    _PAGEOUT: _take_notice_of_locks,
}  # fmt: skip
_OF_OTHERS: Final = frozenset({_WILLNEED, _COLD, _PAGEOUT})


def _populate(c: Caller, start: int, end: int, access: Access) -> int:
    """Bring pages into memory, up to the first that cannot be used.

    Raises `LinuxError`: ENOMEM, EINVAL, EFAULT.
    """
    for area in parts(c.process, start, end):
        if area is None:
            raise LinuxError(ENOMEM)
        if access not in area.access:
            raise LinuxError(EINVAL)
        for page in range(area.start, area.end, PAGE):
            if c.process.space.reach(page, access) is None:
                raise LinuxError(EFAULT)
    return 0


def _advise(c: Caller, process: Process, start: int, length: int, advice: int) -> int:
    follow = _ADVICE.get(advice)
    if follow is None and advice not in {_POPULATE_READ, _POPULATE_WRITE}:
        raise LinuxError(EINVAL)
    end = end_of(c, start, length)
    if follow is None:
        return _populate(c, start, end, Access.READ if advice == _POPULATE_READ else Access.WRITE)
    gaps = False
    for area in parts(process, start, end):
        if area is None:
            gaps = True
            continue
        sealed = Mark.SEALED in area.marks and _is_anonymous(area) and Access.WRITE not in area.access
        if sealed and advice in _DISCARDS:
            raise LinuxError(EPERM)
        follow(process, area)
    if gaps:
        raise LinuxError(ENOMEM)
    return 0


@call("madvise")
def madvise(c: Caller, address: Address, length: Size, advice: Int) -> int:
    """Take advice about the use of memory: drop pages, or decide what a child gets."""
    return _advise(c, c.process, address, length, advice)


@call("process_madvise")
def process_madvise(c: Caller, fd: Int, vector: Address, count: Size, advice: Int, flags: Unsigned) -> int:
    """Take advice about the speed of another process."""
    if flags:
        raise LinuxError(EINVAL)
    wanted = vector_of(c, vector, count)
    process = process_file(c, fd).process
    if process.reaped or not process.alive:
        raise LinuxError(ESRCH)
    if advice not in _OF_OTHERS:
        raise LinuxError(EINVAL)
    own = c.process.credentials
    if not process.may_be_traced(own) or (process is not c.process and not own.can(Capability.SYS_NICE)):
        raise LinuxError(EPERM)
    done = 0
    for start, length in wanted:
        try:
            _advise(c, process, start, length, advice)
        except LinuxError:
            if not done:
                raise
            break
        done += length
    return done
