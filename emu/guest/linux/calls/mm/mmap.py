"""System calls that map memory.  Source: Linux mm/mmap.c, mm/mprotect.c, mm/msync.c, mm/mincore.c."""

from __future__ import annotations

from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, round_up
from emu.guest.linux.calls.mm.mlock import need_lock_limit, need_to_lock, populate
from emu.guest.linux.calls.mm.vm_ranges import end_of, need_unsealed, parts, whole_pages
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import (
    EACCES,
    EBADF,
    EBUSY,
    EEXIST,
    EINVAL,
    ENODEV,
    ENOMEM,
    ENOSYS,
    EOPNOTSUPP,
    EOVERFLOW,
    EPERM,
    LinuxError,
)
from emu.guest.linux.fs.file_kinds import RegularOpen
from emu.guest.linux.fs.inode import Device
from emu.guest.linux.fs.regular import NO_WRITING
from emu.guest.linux.mm.address_space import Area, Backing, Mark, SharedMemory
from emu.guest.linux.process.rlimit import AS, DATA
from emu.isa.linux_abi import READ_IMPLIES_EXEC

_MAP_SHARED, _MAP_PRIVATE, _MAP_SHARED_VALIDATE, _MAP_TYPE = 1, 2, 3, 0xF
_MAP_FIXED: Final = 0x10
_MAP_ANONYMOUS: Final = 0x20
_MAP_GROWSDOWN: Final = 0x100
_MAP_FIXED_NOREPLACE: Final = 0x100000
_MAP_LOCKED: Final = 0x2000
# Flags that MAP_SHARED_VALIDATE knows (LEGACY_MAP_MASK).
_VALIDATED: Final = 0x7C07_F9F3
# The end of the largest file, by the bytes of a word (MAX_LFS_FILESIZE).
_LARGEST_FILE: Final = {8: (1 << 63) - 1, 4: 0xFFFF_FFFF << 12}
_MS_ASYNC, _MS_INVALIDATE, _MS_SYNC = 1, 2, 4
_PROT_READ, _PROT_EXEC = 1, 4
# PROT_READ, PROT_WRITE, PROT_EXEC and PROT_SEM; PROT_GROWSDOWN and PROT_GROWSUP.
_KNOWN_PROT, _GROWS = 0xF, 0x0300_0000
_PROT: Final = Access.READ | Access.WRITE | Access.EXECUTE
_BRK_MAX: Final = 1 << 32


def _access(c: Caller, protection: int) -> Access:
    if protection & _PROT_READ and c.thread.personality & READ_IMPLIES_EXEC:
        protection |= _PROT_EXEC
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
    size = round_up(length)
    if not length or offset % PAGE or kind not in {_MAP_SHARED, _MAP_PRIVATE, _MAP_SHARED_VALIDATE}:
        raise LinuxError(EINVAL)
    if size > space.highest or space.full:
        raise LinuxError(ENOMEM)
    if kind == _MAP_SHARED_VALIDATE and (flags & _MAP_ANONYMOUS or flags & ~_VALIDATED):
        raise LinuxError(EINVAL if flags & _MAP_ANONYMOUS else EOPNOTSUPP)
    if not flags & _MAP_ANONYMOUS and offset + size > _LARGEST_FILE[c.word]:
        raise LinuxError(EOVERFLOW)
    fixed = flags & (_MAP_FIXED | _MAP_FIXED_NOREPLACE)
    shared = kind != _MAP_PRIVATE
    access = _access(c, protection)
    backing, name, may_write = _backing(c, fd, flags, access, shared=shared)
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
        and round_up(address) + size <= space.highest
        and space.free(round_up(address), round_up(address) + size)
    ):
        start = space.unmapped_area(size)
    else:
        start = round_up(address)
    if start is None:
        raise LinuxError(ENOMEM)
    marks = space.future_marks
    if flags & _MAP_GROWSDOWN:
        if shared:
            raise LinuxError(EINVAL)
        marks |= Mark.GROWS_DOWN
    if flags & _MAP_LOCKED:
        need_to_lock(c)
        marks |= Mark.LOCKED
    need_lock_limit(c, marks, size)
    need_limits(c, size)
    area = Area(start, start + size, access, shared, backing, offset if backing else 0, name, may_write, marks)
    if fixed:
        need_unsealed(c, start, start + size)
        tell_unmapped(c, start, start + size)
    space.map(area)
    announce(c, area)
    if Mark.LOCKED in marks and Mark.LOCKED_ON_FAULT not in marks:
        populate(c, area)
    return start


def announce(c: Caller, area: Area) -> None:
    """Tell observers that an area was mapped."""
    for observer in c.kernel.observers:
        observer.mapped(c.process, area)


def need_limits(c: Caller, size: int) -> None:
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
    sealed = bool(file.inode.seals & NO_WRITING)
    if shared and Access.WRITE in access and sealed:
        raise LinuxError(EPERM)
    may_write = not shared or (file.can_write and not sealed)
    if shared and may_write:
        file.inode.mapped_for_writing = True
    return file.inode.pages(c.kernel.frames), file.path, may_write


def tell_unmapped(c: Caller, start: int, end: int) -> None:
    """Tell observers that what is mapped in [start, end) is about to go away."""
    space = c.process.space
    areas = [area.cut(start, end) for area in space.overlapping(start, end)] if c.kernel.observers else []
    if areas:
        for observer in c.kernel.observers:
            observer.unmapped(c.process, areas)


@call("munmap")
def munmap(c: Caller, address: Address, length: Size) -> int:
    """Take mappings out."""
    size = round_up(length)
    if address % PAGE or not length or address + size > c.process.space.highest:
        raise LinuxError(EINVAL)
    need_unsealed(c, address, address + size)
    tell_unmapped(c, address, address + size)
    c.process.space.unmap(address, address + size)
    return 0


@call("mprotect")
def mprotect(c: Caller, address: Address, length: Size, protection: Unsigned) -> int:
    """Change what memory may be used for, up to the first area that refuses."""
    if address % PAGE or protection & _GROWS == _GROWS:
        raise LinuxError(EINVAL)
    if not length:
        return 0
    size = whole_pages(c, length)
    end = address + size
    if not size or end > c.kernel.isa.address_mask:
        raise LinuxError(ENOMEM)
    if protection & ~(_KNOWN_PROT | _GROWS):
        raise LinuxError(EINVAL)
    space, access = c.process.space, _access(c, protection)
    whole = space.between(address, end)
    allowed, refusal = [], ENOMEM if not whole or whole[-1].end < end else 0
    for area in whole:
        if Access.WRITE in access and not area.may_write:
            refusal = EACCES
            break
        if Mark.SEALED in area.marks:
            refusal = EPERM
            break
        allowed.append(area)
    if allowed:
        space.protect(address, allowed[-1].end, access)
    for area in allowed:
        changed = space.area_at(area.start)
        if changed is not None:
            announce(c, changed)
    if refusal:
        raise LinuxError(refusal)
    return 0


@call("pkey_mprotect")
def pkey_mprotect(c: Caller, address: Address, length: Size, protection: Unsigned, key: Int) -> int:
    """Do the same: no CPU here has protection keys, and -1 asks for none."""
    if key != -1:
        raise LinuxError(EINVAL)
    return mprotect(c, address, length, protection)


@call("brk")
def brk(c: Caller, address: Address) -> int:
    """Move the end of the heap; where it cannot go, it stays."""
    space = c.process.space
    old_end, new_end = round_up(space.brk), round_up(address)
    if address < space.brk_start or address - space.brk_start > _BRK_MAX:
        return space.brk
    if new_end > old_end:
        grown = new_end - old_end
        if not space.free(old_end, new_end) or space.size + grown > c.process.limits[AS].soft:
            return space.brk
        if address - space.brk_start > c.process.limits[DATA].soft:
            return space.brk
        heap, marks = space.area_at(old_end - 1), space.future_marks
        try:
            need_lock_limit(c, marks, grown)
        except LinuxError:
            return space.brk
        made = Area(old_end, new_end, Access.READ | Access.WRITE, name="[heap]", marks=marks)
        if heap is not None and heap.name == made.name and (heap.access, heap.marks) == (made.access, marks):
            space.extend(heap, new_end)
        else:
            space.map(made)
        if marks and Mark.LOCKED_ON_FAULT not in marks:
            populate(c, made)
    elif new_end < old_end:
        if space.sealed(new_end, old_end):
            return space.brk
        space.unmap(new_end, old_end)
    space.brk = address
    return address


@call("mincore")
def mincore(c: Caller, address: Address, length: Size, vector: Address) -> int:
    """Report every mapped page as resident."""
    if address % PAGE:
        raise LinuxError(EINVAL)
    end, done = address + round_up(length), 0
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


@call("msync")
def msync(c: Caller, address: Address, length: Size, flags: Int) -> int:
    """Write pages to their files: they are the same memory.  Only the arguments are checked."""
    if flags & ~(_MS_ASYNC | _MS_INVALIDATE | _MS_SYNC) or (flags & _MS_ASYNC and flags & _MS_SYNC):
        raise LinuxError(EINVAL)
    if address % PAGE:
        raise LinuxError(EINVAL)
    end = address + whole_pages(c, length)
    if end > c.kernel.isa.address_mask:
        raise LinuxError(ENOMEM)
    gaps = False
    for area in parts(c.process, address, end):
        if area is None:
            gaps = True
            if flags == _MS_ASYNC:
                break
        elif flags & _MS_INVALIDATE and Mark.LOCKED in area.marks:
            raise LinuxError(EBUSY)
    if gaps:
        raise LinuxError(ENOMEM)
    return 0


@call("mseal")
def mseal(c: Caller, address: Address, length: Size, flags: Size) -> int:
    """Seal memory: mprotect, munmap, mremap, mmap and some advice refuse it from now on."""
    if c.word != 8:
        raise LinuxError(ENOSYS)
    if flags:
        raise LinuxError(EINVAL)
    end = end_of(c, address, length)
    if None in parts(c.process, address, end):
        raise LinuxError(ENOMEM)
    c.process.space.mark(address, end, give=Mark.SEALED)
    return 0
