"""System calls about shared memory of System V.  Source: Linux ipc/shm.c, ipc/syscall.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.engine.access import Access
from emu.engine.pages import PAGE
from emu.guest.linux.calls.memory import announce, tell_unmapped
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, call
from emu.guest.linux.credentials import Capability
from emu.guest.linux.errno import EACCES, EINVAL, ENOMEM, EPERM, LinuxError
from emu.guest.linux.shared_memory import Segment, pages, wanted
from emu.guest.linux.space import Area

_CREAT, _EXCL = 0o1000, 0o2000
_RDONLY, _RND, _REMAP, _EXEC = 0o10000, 0o20000, 0o40000, 0o100000
_RMID, _SET, _STAT, _INFO = 0, 1, 2, 3
_LOCK, _UNLOCK, _SHM_STAT, _SHM_INFO = 11, 12, 13, 14
# 32-bit programs say with it that they know the structure with more bits; the others always do.
_IPC_64: Final = 0x100
# struct shmid64_ds: ipc64_perm (key, uid, gid, cuid, cgid, mode, sequence), size, times, pids, attaches.
_SHMID: Final = {8: struct.Struct("<iIIIII24xQqqqiiQ16x"), 4: struct.Struct("<iIIIIHxxHxxIIIIIIIIIiiIII")}
_REMOVED: Final = 0o1000


def _may(c: Caller, segment: Segment, wanted_access: int) -> bool:
    credentials = c.process.credentials
    if credentials.can(Capability.IPC_OWNER):
        return True
    user = credentials.user.effective
    shift = 6 if user in {segment.uid, segment.maker[0]} else 3 if credentials.in_group(segment.gid) else 0
    return not wanted_access & ~(segment.permissions >> shift)


@call("shmget")
def shmget(c: Caller, key: Int, size: Size, flags: Unsigned) -> int:
    """Find a segment, or make one."""
    segments, credentials = c.kernel.segments, c.process.credentials
    create, exclusive = bool(flags & _CREAT), bool(flags & _EXCL)
    segment = wanted(segments, key, size, create=create, exclusive=exclusive)
    if segment is None:
        owner = (credentials.user.effective, credentials.group.effective)
        segment = segments.make(key, size, flags & 0o777, owner, c.process.pid)
    elif not _may(c, segment, (flags >> 6 | flags >> 3 | flags) & 7):
        raise LinuxError(EACCES)
    return segment.number


@call("shmat")
def shmat(c: Caller, number: Int, address: Address, flags: Unsigned) -> int:
    """Attach a segment."""
    c.kernel.segments.sweep()
    segment, space = c.kernel.segments.get(number), c.process.space
    size = pages(segment.size)
    if address % PAGE:
        if not flags & _RND:
            raise LinuxError(EINVAL)
        address -= address % PAGE
    access = Access.READ if flags & _RDONLY else Access.READ | Access.WRITE
    if flags & _EXEC:
        access |= Access.EXECUTE
    if not _may(c, segment, 4 if flags & _RDONLY else 6):
        raise LinuxError(EACCES)
    start: int | None = address
    if not address:
        if flags & _REMAP:
            raise LinuxError(EINVAL)
        start = space.room(size)
    elif not flags & _REMAP and not space.free(address, address + size):
        raise LinuxError(EINVAL)
    if start is None or start + size > space.highest:
        raise LinuxError(ENOMEM)
    tell_unmapped(c, start, start + size)
    area = Area(start, start + size, access, shared=True, backing=segment.memory, name=segment.name)
    space.map(area)
    announce(c, area)
    segment.attached, segment.last_pid = c.kernel.wall() // 1_000_000_000, c.process.pid
    return start


@call("shmdt")
def shmdt(c: Caller, address: Address) -> int:
    """Detach a segment."""
    space = c.process.space
    area = space.area_at(address)
    segment = c.kernel.segments.attached(area.backing) if area is not None else None
    if area is None or segment is None or area.start != address or area.offset:
        raise LinuxError(EINVAL)
    for part in [one for one in space.areas if one.backing is segment.memory and one.start - one.offset == address]:
        tell_unmapped(c, part.start, part.end)
        space.unmap(part.start, part.end)
    segment.detached, segment.last_pid = c.kernel.wall() // 1_000_000_000, c.process.pid
    c.kernel.segments.sweep()
    return 0


@call("shmctl")
def shmctl(c: Caller, number: Int, command: Unsigned, buffer: Address) -> int:
    """Tell about a segment, change its owner, or remove it."""
    c.kernel.segments.sweep()
    command &= ~_IPC_64
    segment = c.kernel.segments.get(number)
    credentials = c.process.credentials
    owns = credentials.can(Capability.SYS_ADMIN) or credentials.user.effective in {segment.uid, segment.maker[0]}
    if command in {_STAT, _SHM_STAT}:
        if not _may(c, segment, 4):
            raise LinuxError(EACCES)
        c.write(buffer, _described(c, segment))
        return segment.number if command == _SHM_STAT else 0
    if command not in {_RMID, _SET, _LOCK, _UNLOCK}:
        raise LinuxError(EINVAL)
    if not owns:
        raise LinuxError(EPERM)
    if command == _RMID:
        c.kernel.segments.remove(segment)
    elif command == _SET:
        form = _SHMID[c.word]
        _key, segment.uid, segment.gid, _, _, mode, *_ = form.unpack(c.read(buffer, form.size))
        segment.permissions = mode & 0o777
        segment.changed = c.kernel.wall() // 1_000_000_000
    return 0


def _described(c: Caller, segment: Segment) -> bytes:
    mode = segment.permissions | (_REMOVED if segment.removed else 0)
    perm = (segment.key, segment.uid, segment.gid, *segment.maker, mode)
    times = (segment.attached, segment.detached, segment.changed)
    rest = (segment.maker_pid, segment.last_pid, c.kernel.segments.users(segment))
    if c.word == 8:
        return _SHMID[8].pack(*perm, segment.size, *times, *rest)
    halves = [half for time in times for half in (time & 0xFFFF_FFFF, time >> 32)]
    return _SHMID[4].pack(*perm, 0, 0, 0, segment.size, *halves, *rest, 0, 0)
