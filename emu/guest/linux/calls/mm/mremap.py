"""mremap: mappings become larger or smaller, and move.  Source: Linux mm/mremap.c."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.calls.mm.mlock import need_lock_limit
from emu.guest.linux.calls.mm.mmap import announce, need_limits, tell_unmapped
from emu.guest.linux.calls.mm.vm_ranges import need_unsealed, whole_pages
from emu.guest.linux.calls.table import Address, Caller, Size, Unsigned, call
from emu.guest.linux.errno import EFAULT, EINVAL, ENOMEM, EPERM, LinuxError
from emu.guest.linux.mm.address_space import LOCKS, Area, Mark

_MAYMOVE, _FIXED, _DONTUNMAP = 1, 2, 4
_FLAGS: Final = _MAYMOVE | _FIXED | _DONTUNMAP


@call("mremap")
def mremap(c: Caller, old: Address, old_size: Size, new_size: Size, flags: Unsigned, new: Address) -> int:
    """Make a mapping larger or smaller, elsewhere if need be."""
    wrong = (
        flags & ~_FLAGS,
        flags & (_FIXED | _DONTUNMAP) and not flags & _MAYMOVE,
        flags & _DONTUNMAP and old_size != new_size,
        old % PAGE,
        not whole_pages(c, new_size),
    )
    if any(wrong):
        raise LinuxError(EINVAL)
    old_size, new_size = whole_pages(c, old_size), whole_pages(c, new_size)
    area = c.process.space.area_at(old)
    if area is None:
        raise LinuxError(EFAULT)
    if Mark.SEALED in area.marks:
        raise LinuxError(EPERM)
    if flags & (_FIXED | _DONTUNMAP):
        return _move_to(c, old, old_size, new_size, flags, new)
    if new_size <= old_size:
        _unmap(c, old + new_size, old + old_size)
        return old
    return _grow(c, _checked(c, old, old_size, new_size), old, old_size, new_size, flags)


def _unmap(c: Caller, start: int, end: int) -> None:
    """Take mappings out.  Raises `LinuxError` EPERM: they are sealed."""
    need_unsealed(c, start, end)
    tell_unmapped(c, start, end)
    c.process.space.unmap(start, end)


def _checked(c: Caller, old: int, old_size: int, new_size: int) -> Area:
    """Return the area that is to get a size (vma_to_resize).

    Raises `LinuxError`: EINVAL, EFAULT, EAGAIN, ENOMEM.
    """
    area = c.process.space.area_at(old)
    if area is None or old + old_size > area.end:
        raise LinuxError(EFAULT)
    if not old_size and not area.shared:
        raise LinuxError(EINVAL)
    if new_size > old_size:
        need_lock_limit(c, area.marks, new_size - old_size)
        need_limits(c, new_size - old_size)
    return area


def _grow(c: Caller, area: Area, old: int, old_size: int, new_size: int, flags: int) -> int:
    space = c.process.space
    at_end = old_size and old + old_size == area.end
    if at_end and old + new_size <= space.highest and space.free(area.end, old + new_size):
        space.extend(area, old + new_size)
        return old
    to = space.unmapped_area(new_size) if flags & _MAYMOVE else None
    if to is None:
        raise LinuxError(ENOMEM)
    return _move(c, old, old_size, new_size, to, keep=False)


def _move_to(c: Caller, old: int, old_size: int, new_size: int, flags: int, new: int) -> int:
    """Move a mapping to an address that the program has chosen, or leave an empty one behind."""
    space = c.process.space
    if new % PAGE or new_size > space.highest or new > space.highest - new_size:
        raise LinuxError(EINVAL)
    if old + old_size > new and new + new_size > old:
        raise LinuxError(EINVAL)
    if flags & _FIXED:
        _unmap(c, new, new + new_size)
    if old_size > new_size:
        _unmap(c, old + new_size, old + old_size)
        old_size = new_size
    _checked(c, old, old_size, new_size)
    to: int | None = new
    if flags & _DONTUNMAP:
        need_limits(c, new_size)
    if not flags & _FIXED and not (new >= space.lowest and space.free(new, new + new_size)):
        to = space.unmapped_area(new_size)
    if to is None:
        raise LinuxError(ENOMEM)
    return _move(c, old, old_size, new_size, to, keep=bool(flags & _DONTUNMAP))


def _move(c: Caller, old: int, old_size: int, new_size: int, to: int, *, keep: bool) -> int:
    """Move the pages of a mapping; `keep` leaves the mapping, without them."""
    space = c.process.space
    area = space.area_at(old)
    assert area is not None
    if not old_size:  # another mapping of what is shared
        made = replace(area.cut(old, area.end), start=to, end=to + new_size)
        made = replace(made, offset=area.offset + old - area.start)
        space.map(made)
        announce(c, made)
        return to
    left = area.cut(old, old + old_size)
    if not keep:
        tell_unmapped(c, old, old + old_size)
    space.move(old, old + old_size, to)
    if keep:
        space.map(replace(left, marks=left.marks & ~LOCKS))
    moved = space.area_at(to)
    if moved is not None and new_size > old_size:
        space.extend(moved, to + new_size)
        moved = space.area_at(to)
    if moved is not None:
        announce(c, moved)
    return to
