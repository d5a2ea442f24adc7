"""The address space of a process.

Areas of addresses, and the frames behind those pages that were touched.

Pages come into being when they are first used (demand paging), are shared after a fork until one
side writes (copy on write), and pages of a file are those of the file's page cache until a private
mapping writes.  A breakpoint that is written into a program's text thus lands in a page of that
process alone, as it does in the kernels this follows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from enum import Flag
from typing import Protocol

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, CodeChangesError
from emu.guest.linux.mm.page_frames import Frames
from emu.support.immutable import immutable
from emu.support.words import BadAddressError

# Areas of one address space (DEFAULT_MAX_MAP_COUNT).
AREAS_MAX = 65_530
# Rights as plain numbers: pages are looked up very often, and the operators of flags are Python's.
_both = int.__and__
_READ, _WRITE, _EXECUTE = map(int, (Access.READ, Access.WRITE, Access.EXECUTE))
_TO_WRITE = Access.WRITE
_WITHOUT_WRITE = [Access(rights & ~_WRITE) for rights in range(8)]
_WITHOUT_EXECUTE = [Access(rights & ~_EXECUTE) for rights in range(8)]
_AND_EXECUTE = [Access(rights | _EXECUTE) for rights in range(8)]
# Bytes that stay free below an area that grows (stack_guard_gap); the most that it has: the default of RLIMIT_STACK.
_GUARD_GAP, _MOST_GROWN = 256 * PAGE, 8 << 20
# Bytes of the longest instruction.
_LONGEST = 15


class Mark(Flag):
    """A request of a program about a part of its memory, besides its rights."""

    NONE = 0
    SEALED = 1
    """Memory that mseal protects from changes."""
    LOCKED = 2
    """Memory that stays resident (mlock)."""
    LOCKED_ON_FAULT = 4
    """Memory that is locked page by page, at its first use (MLOCK_ONFAULT)."""
    NOT_IN_CHILD = 8
    """A child does not get it (MADV_DONTFORK)."""
    WIPED_IN_CHILD = 16
    """A child gets zeros instead of it (MADV_WIPEONFORK)."""
    GROWS_DOWN = 32
    """An access below it extends it (MAP_GROWSDOWN)."""


LOCKS = Mark.LOCKED | Mark.LOCKED_ON_FAULT


class Backing(Protocol):
    """The source of an area's pages: a file, or memory that processes share."""

    def page(self, index: int) -> int | None:
        """Return the frame of page `index` of it; None: it ends before."""
        ...


@immutable
class Area:
    """A mapping: [start, end), whole pages."""

    start: int
    end: int
    access: Access
    shared: bool = False
    """Whether writes go to the backing, for all to see."""
    backing: Backing | None = None
    """None: zeros."""
    offset: int = 0
    """The area's offset in the backing, in bytes."""
    name: str = ""
    """Path of the file, or what /proc/PID/maps calls it: "[heap]", "[stack]"."""
    may_write: bool = True
    """Whether mprotect may make it writable: not if it shares a file that was opened for
    reading."""
    marks: Mark = Mark.NONE

    def cut(self, start: int, end: int) -> Area:
        """Return the part of it in [start, end)."""
        if start <= self.start and self.end <= end:
            return self
        start, end = max(start, self.start), min(end, self.end)
        return replace(self, start=start, end=end, offset=self.offset + start - self.start)

    def joins(self, after: Area) -> bool:
        """Return whether it and the area behind it are one mapping."""
        return after == replace(self, start=after.start, end=after.end, offset=after.offset) and (
            self.end == after.start and (self.backing is None or after.offset - self.offset == self.end - self.start)
        )


class SharedMemory:
    """Anonymous memory that processes share (MAP_SHARED | MAP_ANONYMOUS)."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._pages: dict[int, int] = {}

    def release(self) -> None:
        """Give all frames back."""
        for frame in self._pages.values():
            self._frames.release(frame)
        self._pages.clear()

    @property
    def resident(self) -> int:
        """The number of pages in memory."""
        return len(self._pages)

    def page(self, index: int) -> int:
        """Return the frame of a page."""
        if index not in self._pages:
            self._pages[index] = self._frames.take()
        return self._pages[index]

    def clear(self, start: int, end: int) -> None:
        """Make zeros of whole pages, for all that share them."""
        for index in _within(self._pages, start, end):
            self._frames.write(self._pages[index], 0, bytes(PAGE))


class Space:
    """One address space.  Implements `emu.engine.memory.pages.AddressSpace`.

    Addresses that mappings may have are those from `lowest` to `highest`.  `flush_page(address)`
    is called when what an address means has changed, `forbid_writing(pages)` when pages that could
    be written cannot be written any more.
    """

    def __init__(self, frames: Frames, lowest: int, highest: int) -> None:
        self.frames = frames
        self.lowest = lowest
        self.highest = highest
        self.top = highest
        """The address below which mmap looks for free addresses, downwards."""
        self.brk_start = self.brk = 0
        self.readable: dict[int, int] = {}
        self.writable: dict[int, int] = {}
        self.faults = 0
        """The number of pages that were made or looked up."""
        self.most_resident = 0
        """The most pages that were in memory at one time."""
        self.users = 1
        """The number of threads that run in it."""
        self.restorer = 0
        """Address of the code that returns from a signal."""
        self.future_marks = Mark.NONE
        """The marks of what is mapped from now on (mlockall)."""
        self.barriers = 0
        """The commands of membarrier that its threads have registered for."""
        self.flush_page: Callable[[int], None] = lambda _address: None
        self.forbid_writing: Callable[[Collection[int]], None] = lambda _pages: None
        self._resident: dict[int, int] = {}
        self._areas: list[Area] = []
        self._starts: list[int] = []
        self._size = 0
        frames.spaces.add(self)
        self._packed: tuple[int, int] | None = None
        """A size and an address: from there up to `top`, no range of that size is free."""

    # -- areas

    @property
    def full(self) -> bool:
        """Whether there are as many areas as a process may have (vm.max_map_count)."""
        return len(self._areas) >= AREAS_MAX

    @property
    def size(self) -> int:
        """Bytes of address space that are mapped (total_vm)."""
        return self._size

    @property
    def resident(self) -> int:
        """Pages in memory."""
        return len(self._resident)

    @property
    def resident_pages(self) -> Collection[int]:
        """The numbers of the pages in memory."""
        return self._resident.keys()

    @property
    def areas(self) -> tuple[Area, ...]:
        """The areas, by address."""
        return tuple(self._areas)

    def area_at(self, address: int) -> Area | None:
        """Return the area that holds an address."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._areas[index].end:
            return self._areas[index]
        return None

    def free(self, start: int, end: int) -> bool:
        """Return whether nothing is mapped in [start, end)."""
        return not any(True for _ in self._overlapping(start, end))

    def unmapped_area(self, size: int, below: int | None = None) -> int | None:
        """Return the highest address, below `below`, where `size` bytes are free.

        None if there is none.
        """
        if below is None:
            end = self._packed[1] if self._packed is not None and size >= self._packed[0] else self.top
        else:
            end = below
        for index in range(bisect_left(self._starts, end) - 1, -1, -1):
            area = self._areas[index]
            if end - area.end >= size:
                break
            end = area.start
        if below is None:
            self._packed = size, end
        return end - size if end - size >= self.lowest else None

    def map(self, area: Area) -> None:
        """Add an area, which replaces the mappings in its range."""
        self.unmap(area.start, area.end)
        self._insert(area)

    def unmap(self, start: int, end: int) -> list[Area]:
        """Take everything out of [start, end), and return the parts of areas that were there."""
        removed = []
        for area in self.overlapping(start, end):
            removed.append(area.cut(start, end))
            self._remove(area)
            if area.start < start:
                self._insert(area.cut(area.start, start))
            if end < area.end:
                self._insert(area.cut(end, area.end))
        self.drop(start, end)
        return removed

    def overlapping(self, start: int, end: int) -> list[Area]:
        """Return the areas of which some is in [start, end)."""
        return list(self._overlapping(start, end))

    def between(self, start: int, end: int) -> list[Area]:
        """Return the parts of the areas in [start, end), up to the first gap."""
        parts = []
        for area in self._overlapping(start, end):
            if area.start > start:
                break
            parts.append(area.cut(start, end))
            start = area.end
        return parts

    def sealed(self, start: int, end: int) -> bool:
        """Return whether some of [start, end) has to stay as it is."""
        return any(Mark.SEALED in area.marks for area in self._overlapping(start, end))

    def marked(self, mark: Mark) -> int:
        """Return how many bytes have a mark."""
        return sum(area.end - area.start for area in self._areas if mark in area.marks)

    def mark(self, start: int, end: int, *, give: Mark = Mark.NONE, take: Mark = Mark.NONE) -> None:
        """Give marks to what is mapped in [start, end), and take others away."""
        self._change(start, end, lambda part: replace(part, marks=part.marks & ~take | give))

    def _change(self, start: int, end: int, change: Callable[[Area], Area]) -> None:
        """Change the parts of areas in [start, end), and join what has become alike."""
        for area in self.overlapping(start, end):
            part = area.cut(start, end)
            changed = change(part)
            if changed == part:
                continue
            self._remove(area)
            if area.start < start:
                self._insert(area.cut(area.start, start))
            self._insert(changed)
            if end < area.end:
                self._insert(area.cut(end, area.end))
        self._join(start, end)

    def _join(self, start: int, end: int) -> None:
        """Make one area of neighbours that are alike, the borders of [start, end) included."""
        index = max(0, bisect_right(self._starts, start) - 2)
        while index + 1 < len(self._areas) and self._starts[index + 1] <= end:
            area, after = self._areas[index : index + 2]
            if area.joins(after):
                self._remove(after)
                self.extend(area, after.end)
            else:
                index += 1

    def protect(self, start: int, end: int, access: Access) -> bool:
        """Change what [start, end) may be used for; False if not all of it is mapped."""
        whole = self._covered(start, end)
        self._change(start, end, lambda part: replace(part, access=access))
        for page in _within(self._resident, start, end):
            self.readable.pop(page, None)
            self.writable.pop(page, None)
            self.flush_page(page * PAGE)
        return whole

    def extend(self, area: Area, end: int) -> None:
        """Make an area end later; what is after it must be free."""
        self._remove(area)
        self._insert(replace(area, end=end))

    def move(self, start: int, end: int, to: int) -> None:
        """Move the mapping of [start, end), with its pages, to address `to`."""
        parts = [area.cut(start, end) for area in self._overlapping(start, end)]
        pages = {page: self._resident.pop(page) for page in _within(self._resident, start, end)}
        for page in pages:
            self.readable.pop(page, None)
            self.writable.pop(page, None)
            self.flush_page(page * PAGE)
        self.unmap(start, end)
        for area in parts:
            self.map(replace(area, start=area.start - start + to, end=area.end - start + to))
        for page, frame in pages.items():
            self._resident[page - start // PAGE + to // PAGE] = frame

    def drop(self, start: int, end: int) -> None:
        """Forget the pages of [start, end): what they are is looked up, or made, again."""
        for page in _within(self._resident, start, end):
            self.frames.release(self._resident.pop(page))
            self.readable.pop(page, None)
            self.writable.pop(page, None)
            self.flush_page(page * PAGE)

    def fork(self) -> Space:
        """Return a copy; private pages are shared until either side writes."""
        child = Space(self.frames, self.lowest, self.highest)
        child.top, child.brk_start, child.brk = self.top, self.brk_start, self.brk
        child.restorer = self.restorer
        child._areas = list(self._areas)
        child._starts = list(self._starts)
        child._size = self._size
        child._resident = dict(self._resident)
        child.barriers = self.barriers
        if any(area.marks for area in self._areas):
            child._keep_marks()
        self.frames.share_all(child._resident.values())
        self.forbid_writing(self.writable.keys())
        self.writable.clear()
        return child

    def _keep_marks(self) -> None:
        """Apply the marks of the areas that a parent has to this space of its child."""
        areas = self._areas
        self._areas = [replace(one, marks=one.marks & ~LOCKS) for one in areas if Mark.NOT_IN_CHILD not in one.marks]
        self._starts = [area.start for area in self._areas]
        self._size = sum(area.end - area.start for area in self._areas)
        for area in areas:
            if area.marks & (Mark.NOT_IN_CHILD | Mark.WIPED_IN_CHILD):
                for page in _within(self._resident, area.start, area.end):
                    del self._resident[page]

    def release(self) -> None:
        """Give all frames back."""
        self.frames.release_all(self._resident.values())
        self._resident.clear()
        self.readable.clear()
        self.writable.clear()
        self._areas.clear()
        self._starts.clear()
        self._size, self._packed = 0, None

    def _overlapping(self, start: int, end: int) -> Iterator[Area]:
        for index in range(max(0, bisect_right(self._starts, start) - 1), bisect_left(self._starts, end)):
            if self._areas[index].end > start:
                yield self._areas[index]

    def _covered(self, start: int, end: int) -> bool:
        for area in self._overlapping(start, end):
            if area.start > start:
                return False
            start = area.end
        return start >= end

    def _insert(self, area: Area) -> None:
        if area.start < area.end:
            index = bisect_right(self._starts, area.start)
            self._starts.insert(index, area.start)
            self._areas.insert(index, area)
            self._size += area.end - area.start

    def _remove(self, area: Area) -> None:
        index = bisect_right(self._starts, area.start) - 1
        del self._starts[index], self._areas[index]
        self._size -= area.end - area.start
        if self._packed is not None and area.end > self._packed[1]:
            self._packed = None

    # -- pages

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Serve a miss of the TLB.

        Return the frame of a page, made now if it must be, and what the CPU may do there.

        None: `access` is not granted.  Raises `CodeChangesError`, and
        `emu.guest.linux.mm.page_frames.OutOfMemoryError`.
        """
        area = self.area_at(address) or self._grown(address)
        if area is None or not _both(access, area.access):
            return None
        page = address // PAGE
        if access is _TO_WRITE and not area.shared and _both(area.access, _EXECUTE):
            self._copy_code(area, page)
        frame = self._page(area, page, writing=access is _TO_WRITE)
        if frame is None:
            return None
        granted = area.access
        if not area.shared and self.frames.shared(frame):
            granted = _WITHOUT_WRITE[granted]
        if area.backing is not None:
            granted = self._stored_or_executed(area, page, frame, access, granted)
        return frame + address % PAGE, granted

    def _grown(self, address: int) -> Area | None:
        """Extend the area above an address down to it, if it grows (mm/mmap.c, expand_stack)."""
        index = bisect_right(self._starts, address)
        if index == len(self._areas) or Mark.GROWS_DOWN not in self._areas[index].marks:
            return None
        area, start = self._areas[index], address // PAGE * PAGE
        below = self._areas[index - 1] if index else None
        guarded = below is not None and below.access and Mark.GROWS_DOWN not in below.marks
        if area.end - start > _MOST_GROWN or (guarded and start - self._areas[index - 1].end < _GUARD_GAP):
            return None
        self._remove(area)
        area = replace(area, start=start)
        self._insert(area)
        return area

    def _copy_code(self, area: Area, page: int) -> None:
        """Let a page be copied outside the block that writes to it, whose code may be there."""
        frame = self._resident.get(page)
        if frame is not None and self.frames.shared(frame) and self.frames.executed(frame):
            raise CodeChangesError(lambda _pc: self._page(area, page, writing=True))

    def _stored_or_executed(self, area: Area, page: int, frame: int, access: Access, granted: Access) -> Access:
        """Return what the CPU may do to a page of a file or of shared memory.

        Unicorn notices a store to code if the mapping is executable, and no other.  So a frame is
        either executed, or written through mappings without execution: a compiler's memory is
        often mapped once for each.  Where one instruction needs both, the mapping is taken for an
        executable one.
        """
        frames = self.frames
        if _both(granted, _EXECUTE):
            if frame not in frames.written:
                return granted
            if access is not Access.EXECUTE:
                return _WITHOUT_EXECUTE[granted]
            frames.written.remove(frame)
            self._forget_mappings(area, page, _WRITE)
        elif _both(granted, _WRITE) and area.shared:
            if not frames.executed(frame):
                frames.written.add(frame)
            elif frame in frames.mixed:
                return _AND_EXECUTE[granted]
            elif access is _TO_WRITE:
                raise CodeChangesError(lambda pc: self._execute_no_more(area, page, frame, pc))
            else:
                return _WITHOUT_WRITE[granted]
        return granted

    def _execute_no_more(self, area: Area, page: int, frame: int, pc: int) -> None:
        if frame in (self._resident.get(pc // PAGE), self._resident.get((pc + _LONGEST - 1) // PAGE)):
            self.frames.mixed.add(frame)
            return
        self.frames.execute_no_more(frame)
        self._forget_mappings(area, page, _EXECUTE)

    def _forget_mappings(self, area: Area, page: int, right: int) -> None:
        for space in self.frames.spaces:
            space.look_up_again(area.backing, area.offset + page * PAGE - area.start, right)

    def look_up_again(self, backing: object, offset: int, right: int) -> None:
        """Forget a page of a file or of shared memory where it is mapped with a right."""
        for area in self._areas:
            address = area.start + offset - area.offset
            if area.backing is backing and _both(area.access, right) and area.start <= address < area.end:
                self.flush_page(address)

    def reach(self, address: int, access: Access) -> int | None:
        """Return the physical address for a system call's access, by the area's rights."""
        area = self.area_at(address) or self._grown(address)
        if area is None or access not in area.access:
            return None
        frame = self._page(area, address // PAGE, writing=access is Access.WRITE)
        return None if frame is None else frame + address % PAGE

    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """Return nothing: any page may move."""
        return ()

    def forget_code(self, physical: int, size: int) -> None:
        """Forget what was translated from memory that a system call is about to write."""
        self.frames.changed(physical // PAGE * PAGE, physical % PAGE, size)

    def _page(self, area: Area, page: int, *, writing: bool, force: bool = False) -> int | None:
        """Return the frame of a page, made or copied as needed; None: a file ends before it."""
        frame = self._resident.get(page)
        if frame is None:
            index = (area.offset + page * PAGE - area.start) // PAGE
            if area.backing is None:
                frame = self.frames.take()
            else:
                found = area.backing.page(index)
                if found is None:
                    return None
                frame = self.frames.share(found)
            self._resident[page] = frame
            self.faults += 1
            self.most_resident = max(self.most_resident, len(self._resident))
        copied = (writing and not area.shared) and self.frames.shared(frame)
        if copied:
            copy = self.frames.copy(frame)
            self.frames.release(frame)
            frame = self._resident[page] = copy
            self.flush_page(page * PAGE)
        if _both(area.access, _READ):
            self.readable[page] = frame
        if _both(area.access, _WRITE) and not force and (area.shared or not self.frames.shared(frame)):
            self.writable[page] = frame
        return frame

    # -- what debuggers and probes do, whatever the area's rights

    def touched(self, area: Area) -> list[int]:
        """Return the addresses of an area's pages that were used so far."""
        return [page * PAGE for page in _within(self._resident, area.start, area.end)]

    def peek(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        data = bytearray()
        while len(data) < size:
            at = address + len(data)
            frame = self._frame(at, writing=False)
            data += self.frames.part(frame, at % PAGE, size - len(data))
        return bytes(data)

    def peek_mapped(self, address: int, size: int) -> bytes:
        """Read memory up to the first address that is not mapped."""
        data = bytearray()
        while len(data) < size:
            at = address + len(data)
            try:
                data += self.peek(at, min(size - len(data), PAGE - at % PAGE))
            except BadAddressError:
                break
        return bytes(data)

    def poke(self, address: int, data: bytes, *, forget: bool = True) -> None:
        """Write memory, in this process alone.  Raises `BadAddressError`.

        Translated code is forgotten, unless `forget` says otherwise: a system that leaves the
        instruction cache alone.
        """
        done = 0
        while done < len(data):
            at = address + done
            step = min(len(data) - done, PAGE - at % PAGE)
            self.frames.write(self._frame(at, writing=True), at % PAGE, data[done : done + step], forget=forget)
            done += step

    def _frame(self, address: int, *, writing: bool) -> int:
        area = self.area_at(address)
        frame = self._page(area, address // PAGE, writing=writing, force=True) if area else None
        if frame is None:
            raise BadAddressError(address)
        return frame

    def is_own(self, address: int) -> bool:
        """Return whether the page at an address belongs to this process alone."""
        frame = self._resident.get(address // PAGE)
        return frame is not None and not self.frames.shared(frame)


def _within(pages: Mapping[int, object], start: int, end: int) -> list[int]:
    """Return which of these pages are in [start, end), however large that is."""
    first, last = start // PAGE, -(-end // PAGE)
    if last - first > len(pages):
        return sorted(page for page in pages if first <= page < last)
    return [page for page in range(first, last) if page in pages]
