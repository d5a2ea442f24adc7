"""System calls that keep memory from being paged out.  Source: Linux mm/mlock.c.

Nothing is ever paged out here, but locked memory is counted and limited, and some calls refuse it.
"""

from __future__ import annotations

from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.calls.mm.vm_ranges import whole_pages
from emu.guest.linux.calls.table import Address, Caller, Int, Size, call
from emu.guest.linux.errno import EAGAIN, EINVAL, ENOMEM, EPERM, LinuxError
from emu.guest.linux.mm.address_space import LOCKS, Area, Mark
from emu.guest.linux.mm.page_frames import OutOfMemoryError
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.rlimit import MEMLOCK

_MLOCK_ONFAULT: Final = 1
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


def need_to_lock(c: Caller) -> None:
    """Check that the process may lock memory at all.  Raises `LinuxError` EPERM."""
    if not c.process.limits[MEMLOCK].soft and not c.process.credentials.can(Capability.IPC_LOCK):
        raise LinuxError(EPERM)


def may_lock(c: Caller, size: int) -> bool:
    """Return whether the limit of locked memory lets the process lock so many bytes in all."""
    limit = c.process.limits[MEMLOCK].soft // PAGE * PAGE
    return size <= limit or c.process.credentials.can(Capability.IPC_LOCK)


def need_lock_limit(c: Caller, marks: Mark, size: int) -> None:
    """Check that so many bytes more may be locked, if these marks say so.

    Raises `LinuxError` EAGAIN.
    """
    if Mark.LOCKED in marks and not may_lock(c, c.process.space.marked(Mark.LOCKED) + size):
        raise LinuxError(EAGAIN)


def populate(c: Caller, area: Area) -> bool:
    """Bring the pages of an area into memory; return whether all could be used.

    Raises `OutOfMemoryError`.
    """
    space = c.process.space
    write = Access.WRITE in area.access and not area.shared
    access = Access.WRITE if write else Access.READ if area.access else Access.WRITE
    return all(space.reach(page, access) is not None for page in range(area.start, area.end, PAGE))


def _lock(c: Caller, address: int, length: int, marks: Mark) -> int:
    need_to_lock(c)
    size = whole_pages(c, length + address % PAGE)
    start = address - address % PAGE
    space = c.process.space
    known = sum(area.end - area.start for area in space.between(start, start + size) if Mark.LOCKED in area.marks)
    if not may_lock(c, space.marked(Mark.LOCKED) + size - known):
        raise LinuxError(ENOMEM)
    _mark(c, start, size, marks)
    if Mark.LOCKED_ON_FAULT not in marks:
        try:
            if not all(populate(c, area) for area in space.between(start, start + size)):
                raise LinuxError(ENOMEM)
        except OutOfMemoryError:
            raise LinuxError(EAGAIN) from None
    return 0


def _mark(c: Caller, start: int, size: int, marks: Mark) -> None:
    """Lock or unlock memory up to the first gap.  Raises `LinuxError`: EINVAL, ENOMEM: a gap."""
    end = start + size
    if end > c.kernel.isa.address_mask:
        raise LinuxError(EINVAL)
    space = c.process.space
    found = space.between(start, end)
    if found:
        space.mark(start, found[-1].end, give=marks, take=LOCKS)
    if size and (not found or found[-1].end < end):
        raise LinuxError(ENOMEM)


@call("mlock")
def mlock(c: Caller, address: Address, length: Size) -> int:
    """Lock memory."""
    return _lock(c, address, length, Mark.LOCKED)


@call("mlock2")
def mlock2(c: Caller, address: Address, length: Size, flags: Int) -> int:
    """Lock memory, or each page when it is used first."""
    if flags & ~_MLOCK_ONFAULT:
        raise LinuxError(EINVAL)
    return _lock(c, address, length, LOCKS if flags else Mark.LOCKED)


@call("munlock")
def munlock(c: Caller, address: Address, length: Size) -> int:
    """Unlock memory."""
    _mark(c, address - address % PAGE, whole_pages(c, length + address % PAGE), Mark.NONE)
    return 0


@call("mlockall")
def mlockall(c: Caller, flags: Int) -> int:
    """Lock all that is mapped now, or what will be mapped, or both."""
    if not flags or flags & ~(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) or flags == _MCL_ONFAULT:
        raise LinuxError(EINVAL)
    need_to_lock(c)
    space = c.process.space
    marks = LOCKS if flags & _MCL_ONFAULT else Mark.LOCKED
    if flags & _MCL_CURRENT and not may_lock(c, space.size):
        raise LinuxError(ENOMEM)
    space.future_marks = marks if flags & _MCL_FUTURE else Mark.NONE
    if flags & _MCL_CURRENT:
        space.mark(0, space.highest, give=marks, take=LOCKS)
        if not flags & _MCL_ONFAULT:
            for area in space.areas:
                populate(c, area)
    return 0


@call("munlockall")
def munlockall(c: Caller) -> int:
    """Unlock everything."""
    space = c.process.space
    space.future_marks = Mark.NONE
    space.mark(0, space.highest, take=LOCKS)
    return 0
