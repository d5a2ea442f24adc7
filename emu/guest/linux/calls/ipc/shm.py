"""System calls about shared memory of System V.  Source: Linux ipc/shm.c, ipc/syscall.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, round_up
from emu.guest.linux.calls.ipc.ipc_util import IPC_64, Command, packed_owner, read_owner
from emu.guest.linux.calls.mm.mmap import announce, tell_unmapped
from emu.guest.linux.calls.mm.vm_ranges import need_unsealed
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EINVAL, ENOMEM, LinuxError
from emu.guest.linux.ipc.shm import DESTROYED, SEGMENTS_MAX, Segment
from emu.guest.linux.mm.address_space import Area

_RDONLY, _RND, _REMAP, _EXEC = 0o10000, 0o20000, 0o40000, 0o100000
_LOCK, _UNLOCK, _SHM_STAT, _SHM_INFO, _SHM_STAT_ANY = 11, 12, 13, 14, 15
# The fields after the owner in struct shmid64_ds: size, times, pids, attaches; 32-bit programs have times of two words.
_REST: Final = {8: struct.Struct("<QqqqiiQ16x"), 4: struct.Struct("<IIIIIIIiiI8x")}


@call("shmget")
def shmget(c: Caller, key: Int, size: Size, flags: Unsigned) -> int:
    """Find a segment, or make one."""
    segments, credentials = c.kernel.segments, c.process.credentials
    found = segments.table.wanted(key, flags)
    if found is None:
        owner = (credentials.user.effective, credentials.group.effective)
        return segments.make(key, size, flags & 0o777, owner, c.process.pid).number
    if size > found.size:
        raise LinuxError(EINVAL)
    found.check(credentials, (flags >> 6 | flags >> 3 | flags) & 7)
    return found.number


@call("shmat")
def shmat(c: Caller, number: Int, address: Address, flags: Unsigned) -> int:
    """Attach a segment."""
    c.kernel.segments.sweep()
    segment, space = c.kernel.segments.table.get(number), c.process.space
    size = round_up(segment.size)
    if address % PAGE:
        if not flags & _RND:
            raise LinuxError(EINVAL)
        address -= address % PAGE
    access = Access.READ if flags & _RDONLY else Access.READ | Access.WRITE
    if flags & _EXEC:
        access |= Access.EXECUTE
    segment.check(c.process.credentials, 4 if flags & _RDONLY else 6)
    start: int | None = address
    if not address:
        if flags & _REMAP:
            raise LinuxError(EINVAL)
        start = space.unmapped_area(size)
    elif not flags & _REMAP and not space.free(address, address + size):
        raise LinuxError(EINVAL)
    if start is None or start + size > space.highest:
        raise LinuxError(ENOMEM)
    need_unsealed(c, start, start + size)
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
def shmctl(c: Caller, number: Int, command: Int, buffer: Address) -> int:
    """Describe a segment, change its owner, or remove it."""
    if number < 0:
        raise LinuxError(EINVAL)
    segments, credentials = c.kernel.segments, c.process.credentials
    table = segments.table
    segments.sweep()
    command &= ~IPC_64
    if command == Command.INFO:
        # struct shminfo: bytes of a segment at most and at least, segments, of one process, pages of all.
        largest = (1 << 8 * c.word) - (1 << 24) - 1
        c.write_words(buffer, largest, 1, SEGMENTS_MAX, SEGMENTS_MAX, largest, 0, 0, 0, 0)
        return table.highest
    if command == _SHM_INFO:
        total = sum(round_up(one.size) // PAGE for one in table)
        in_memory = sum(one.memory.resident for one in table)
        c.write(buffer, len(table).to_bytes(c.word, "little"))
        c.write_words(buffer + c.word, total, in_memory, 0, 0, 0)
        return table.highest
    if command in {Command.STAT, _SHM_STAT, _SHM_STAT_ANY}:
        segment = table.get(number) if command == Command.STAT else table.at(number)
        if command != _SHM_STAT_ANY:
            segment.check(credentials, 4)
        c.write(buffer, _described(c, segment))
        return 0 if command == Command.STAT else segment.number
    segment = table.get(number)
    if command not in {Command.RMID, Command.SET, _LOCK, _UNLOCK}:
        raise LinuxError(EINVAL)
    owner = read_owner(c, buffer) if command == Command.SET else None
    segment.check_owner(credentials)
    if command == Command.RMID:
        segments.remove(segment)
    elif owner is not None:
        segment.uid, segment.gid, segment.permissions = owner
        segment.changed = c.kernel.wall() // 1_000_000_000
    return 0


def _described(c: Caller, segment: Segment) -> bytes:
    """Return struct shmid64_ds."""
    times: tuple[int, ...] = (segment.attached, segment.detached, segment.changed)
    rest = (segment.maker_pid, segment.last_pid, c.kernel.segments.users(segment))
    if c.word == 4:
        times = tuple(half for time in times for half in (time & 0xFFFF_FFFF, time >> 32))
    owner = packed_owner(c, segment, DESTROYED if segment.destroyed else 0)
    return owner + _REST[c.word].pack(segment.size, *times, *rest)
