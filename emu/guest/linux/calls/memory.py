"""System calls about memory.  Source: Linux mm/mmap.c, mm/mprotect.c, mm/mremap.c, mm/madvise.c."""

from __future__ import annotations

from typing import Final

from emu.engine.access import Access
from emu.engine.pages import PAGE
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, answer, call
from emu.guest.linux.errno import EACCES, EBADF, EEXIST, EFAULT, EINVAL, ENODEV, ENOMEM, LinuxError
from emu.guest.linux.file_kinds import RegularOpen
from emu.guest.linux.inodes import Device
from emu.guest.linux.limits import AS, DATA
from emu.guest.linux.space import Area, Backing, SharedMemory

_MAP_SHARED, _MAP_PRIVATE, _MAP_SHARED_VALIDATE, _MAP_TYPE = 1, 2, 3, 0xF
_MAP_FIXED: Final = 0x10
_MAP_ANONYMOUS: Final = 0x20
_MAP_FIXED_NOREPLACE: Final = 0x100000
_MREMAP_MAYMOVE, _MREMAP_FIXED, _MREMAP_DONTUNMAP = 1, 2, 4
_MADV_DONTNEED: Final = 4
_PROT: Final = Access.READ | Access.WRITE | Access.EXECUTE
_BRK_MAX: Final = 1 << 32


def _round(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _access(protection: int) -> Access:
    access = Access(protection) & _PROT
    if access & (Access.WRITE | Access.EXECUTE):
        access |= Access.READ  # as the CPUs have it
    return access


@call("mmap")
def mmap(
    c: Caller, address: Address, length: Size, protection: Unsigned, flags: Unsigned, fd: Int, offset: Size
) -> int:
    """Map a file, or memory."""
    space = c.process.space
    kind = flags & _MAP_TYPE
    size = _round(length)
    if not length or offset % PAGE or kind not in {_MAP_SHARED, _MAP_PRIVATE, _MAP_SHARED_VALIDATE}:
        raise LinuxError(EINVAL)
    if size > space.highest or space.full:
        raise LinuxError(ENOMEM)
    fixed = flags & (_MAP_FIXED | _MAP_FIXED_NOREPLACE)
    shared = kind != _MAP_PRIVATE
    backing, name, may_write = _backing(c, fd, flags, _access(protection), shared=shared)
    start: int | None = address
    if fixed:
        if address % PAGE or address < space.lowest:
            raise LinuxError(EINVAL)
        if address + size > space.highest:
            raise LinuxError(ENOMEM)
        if flags & _MAP_FIXED_NOREPLACE and not space.free(address, address + size):
            raise LinuxError(EEXIST)
    elif not (
        address
        and address >= space.lowest
        and _round(address) + size <= space.highest
        and space.free(_round(address), _round(address) + size)
    ):
        start = space.room(size)
    else:
        start = _round(address)
    if start is None:
        raise LinuxError(ENOMEM)
    _need_room(c, size)
    area = Area(start, start + size, _access(protection), shared, backing, offset if backing else 0, name, may_write)
    if fixed:
        tell_unmapped(c, start, start + size)
    space.map(area)
    announce(c, area)
    return start


def announce(c: Caller, area: Area) -> None:
    """Tell observers that an area was mapped."""
    for observer in c.kernel.observers:
        observer.mapped(c.process, area)


def _need_room(c: Caller, size: int) -> None:
    """Check the limit of address space.  Raises `LinuxError` ENOMEM."""
    if c.process.space.size + size > c.process.limits[AS].soft:
        raise LinuxError(ENOMEM)


def _backing(c: Caller, fd: int, flags: int, access: Access, *, shared: bool) -> tuple[Backing | None, str, bool]:
    """Return what an area is filled from, its name, and whether it may be made writable."""
    if flags & _MAP_ANONYMOUS:
        return (SharedMemory(c.kernel.frames) if shared else None), "", True
    file = c.file(fd)
    if not file.can_read:
        raise LinuxError(EACCES if file.can_write else EBADF)
    if isinstance(file.inode, Device) and file.inode.driver == "zero":
        return (SharedMemory(c.kernel.frames) if shared else None), file.path, True
    if not isinstance(file, RegularOpen):
        raise LinuxError(ENODEV)
    if shared and Access.WRITE in access and not file.can_write:
        raise LinuxError(EACCES)
    if shared and file.can_write:
        file.inode.mapped_for_writing = True
    return file.inode.pages(c.kernel.frames), file.path, not shared or file.can_write


def tell_unmapped(c: Caller, start: int, end: int) -> None:
    """Tell observers that what is mapped in [start, end) is about to go away."""
    space = c.process.space
    areas = [area.cut(start, end) for area in space.areas if area.start < end and area.end > start]
    if areas:
        for observer in c.kernel.observers:
            observer.unmapped(c.process, areas)


@call("munmap")
def munmap(c: Caller, address: Address, length: Size) -> int:
    """Take mappings out."""
    size = _round(length)
    if address % PAGE or not length or address + size > c.process.space.highest:
        raise LinuxError(EINVAL)
    tell_unmapped(c, address, address + size)
    c.process.space.unmap(address, address + size)
    return 0


@call("mprotect", "pkey_mprotect")
def mprotect(c: Caller, address: Address, length: Size, protection: Unsigned) -> int:
    """Change what memory may be used for."""
    space = c.process.space
    end = address + _round(length)
    if address % PAGE:
        raise LinuxError(EINVAL)
    if not length:
        return 0
    access = _access(protection)
    areas = [area for area in space.areas if area.start < end and area.end > address]
    if Access.WRITE in access and any(not area.may_write for area in areas):
        raise LinuxError(EACCES)
    if not space.protect(address, end, access):
        raise LinuxError(ENOMEM)
    for area in areas:
        changed = space.area_at(max(area.start, address))
        if changed is not None:
            for observer in c.kernel.observers:
                observer.mapped(c.process, changed)
    return 0


@call("brk")
def brk(c: Caller, address: Address) -> int:
    """Move the end of the heap; where it cannot go, it stays."""
    space = c.process.space
    old_end, new_end = _round(space.brk), _round(address)
    if address < space.brk_start or address - space.brk_start > _BRK_MAX:
        return space.brk
    if new_end > old_end:
        grown = new_end - old_end
        if not space.free(old_end, new_end) or space.size + grown > c.process.limits[AS].soft:
            return space.brk
        if address - space.brk_start > c.process.limits[DATA].soft:
            return space.brk
        heap = space.area_at(old_end - 1)
        start = old_end
        if heap is not None and heap.name == "[heap]" and heap.access == Access.READ | Access.WRITE:
            start = heap.start
            space.extend(heap, new_end)
        else:
            space.map(Area(start, new_end, Access.READ | Access.WRITE, name="[heap]"))
    elif new_end < old_end:
        space.unmap(new_end, old_end)
    space.brk = address
    return address


@call("mremap")
def mremap(c: Caller, old: Address, old_size: Size, new_size: Size, flags: Unsigned, new: Address) -> int:
    """Make a mapping larger or smaller, elsewhere if need be."""
    space = c.process.space
    old_size, new_size = _round(old_size), _round(new_size)
    if old % PAGE or not new_size or flags & ~7 or (flags & _MREMAP_FIXED and not flags & _MREMAP_MAYMOVE):
        raise LinuxError(EINVAL)
    area = space.area_at(old)
    if area is None or old + old_size > area.end:
        raise LinuxError(EFAULT)
    if flags & _MREMAP_FIXED:
        if new % PAGE or new + new_size > space.highest:
            raise LinuxError(EINVAL)
        tell_unmapped(c, new, new + new_size)
        space.unmap(new, new + new_size)
        return _move(c, old, old_size, new_size, new)
    if new_size <= old_size:
        space.unmap(old + new_size, old + old_size)
        return old
    _need_room(c, new_size - old_size)
    if old + old_size == area.end and space.free(area.end, old + new_size) and old + new_size <= space.highest:
        space.extend(area, old + new_size)
        return old
    if not flags & _MREMAP_MAYMOVE:
        raise LinuxError(ENOMEM)
    place = space.room(new_size)
    if place is None:
        raise LinuxError(ENOMEM)
    return _move(c, old, old_size, new_size, place)


def _move(c: Caller, old: int, old_size: int, new_size: int, to: int) -> int:
    space = c.process.space
    kept = min(old_size, new_size)
    tell_unmapped(c, old, old + old_size)
    space.unmap(old + kept, old + old_size)
    space.move(old, old + kept, to)
    area = space.area_at(to)
    if area is not None and new_size > kept:
        space.extend(area, to + new_size)
    moved = space.area_at(to)
    if moved is not None:
        for observer in c.kernel.observers:
            observer.mapped(c.process, moved)
    return to


@call("madvise")
def madvise(c: Caller, address: Address, length: Size, advice: Int) -> int:
    """Drop pages that the program does not need; other advice has no effect."""
    if address % PAGE:
        raise LinuxError(EINVAL)
    space = c.process.space
    end = address + _round(length)
    if advice == _MADV_DONTNEED:
        for area in space.areas:
            if area.start < end and area.end > address and not area.shared:
                space.drop(max(area.start, address), min(area.end, end))
    return 0


@call("mincore")
def mincore(c: Caller, address: Address, length: Size, vector: Address) -> int:
    """Say that everything mapped is in memory."""
    if address % PAGE:
        raise LinuxError(EINVAL)
    end, done = address + _round(length), 0
    while address < end:  # a page of answers at a time (mm/mincore.c): the vector may end before the memory does
        stop = min(end, address + PAGE * PAGE)
        while address < stop:
            area = c.process.space.area_at(address)
            if area is None:
                raise LinuxError(ENOMEM)
            pages = (min(stop, area.end) - address) // PAGE
            c.write(vector + done, b"\1" * pages)
            address += pages * PAGE
            done += pages
    return 0


answer("msync", "mlock", "mlock2", "munlock", "mlockall", "munlockall", "mseal")
