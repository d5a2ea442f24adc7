"""Ranges of memory, as the arguments of system calls name them.

Source: Linux mm/mmap.c, mm/madvise.c.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.engine.memory.pages import PAGE, round_up
from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.mm.address_space import Area
from emu.guest.linux.process.process import Process


def whole_pages(c: Caller, length: int) -> int:
    """Return a length in whole pages; one that is too long for a word becomes 0, as in C."""
    return round_up(length) & c.kernel.isa.address_mask


def end_of(c: Caller, start: int, length: int, error: int = EINVAL) -> int:
    """Return the end of the pages from `start`.

    Raises `LinuxError`: EINVAL if no page begins there; `error` if the end is beyond a word.
    """
    if start % PAGE:
        raise LinuxError(EINVAL)
    size = whole_pages(c, length)
    if (length and not size) or start + size > c.kernel.isa.address_mask:
        raise LinuxError(error)
    return start + size


def parts(process: Process, start: int, end: int) -> Iterator[Area | None]:
    """Yield the parts of areas in [start, end), and None for each gap.

    Areas may be changed meanwhile, one after the other.
    """
    for area in process.space.overlapping(start, end):
        if area.start > start:
            yield None
        part = area.cut(start, end)
        yield part
        start = part.end
    if start < end:
        yield None


def need_unsealed(c: Caller, start: int, end: int) -> None:
    """Check that nothing in [start, end) has to stay as it is.  Raises `LinuxError` EPERM."""
    if c.process.space.sealed(start, end):
        raise LinuxError(EPERM)
