"""A CPU that borrows the memory of a run, page by page, when it first accesses a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.mm.address_space import Area
from emu.guest.linux.mm.page_frames import Frames
from trapline.lab.check.cpu.aliased import AliasedSpace
from trapline.lab.check.cpu.cpu import TrialCpu
from trapline.lab.check.cpu.states import State

# Address of a page -> its content and rights; None: it is not mapped.
Lend = Callable[[int], tuple[bytes, Access] | None]


class BorrowedSpace(AliasedSpace):
    """An address space whose pages are borrowed, except for the program's code."""

    def __init__(self, frames: Frames, lowest: int, highest: int) -> None:
        super().__init__(frames, lowest, highest)
        self.lend: Lend = lambda _page: None
        self._borrowed: dict[int, tuple[int, Access, bytes]] = {}

    def area_at(self, address: int) -> Area | None:
        """Return the area that contains an address; a borrowed page is an area of its own."""
        area = self.mapped(address)
        page = address // PAGE * PAGE
        if area is None and (found := self._borrow(page)) is not None:
            return Area(page, page + PAGE, found[1], shared=True)
        return area

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Serve a miss of the TLB."""
        if self.mapped(address) is not None:
            return super().look_up(address, access)
        found = self._borrow(address // PAGE * PAGE)
        if found is None or access not in found[1]:
            return None
        return found[0] + address % PAGE, found[1]

    def reach(self, address: int, access: Access) -> int | None:
        """Return the physical address for the host's own access."""
        if self.mapped(address) is not None:
            return super().reach(address, access)
        found = self._borrow(address // PAGE * PAGE)
        return None if found is None or access not in found[1] else found[0] + address % PAGE

    def _borrow(self, page: int) -> tuple[int, Access, bytes] | None:
        if page not in self._borrowed:
            lent = self.lend(page)
            if lent is None:
                return None
            data, access = lent
            frame = self.frames.take(data)
            # Borrowed pages are not executable: the instruction under test ends when it jumps there.
            self._borrowed[page] = frame, access & ~Access.EXECUTE, data
        return self._borrowed[page]

    def changed(self) -> dict[str, bytes]:
        """Return the borrowed pages that were written, by name."""
        found = {}
        for page, (frame, _, before) in self._borrowed.items():
            now = bytes(self.frames.read(frame))
            if now != before:
                found[f"memory, page {page:#x}"] = now
        return found

    def forget(self) -> None:
        """Drop all borrowed pages."""
        for page, (frame, _, _) in self._borrowed.items():
            self.flush_page(page)
            self.frames.release(frame)
        self._borrowed.clear()


class BorrowingCpu(TrialCpu):
    """A CPU in a borrowed address space."""

    space: BorrowedSpace

    def clean(self) -> None:
        """Drop the memory that was borrowed."""
        self.space.forget()

    def is_clean(self) -> bool:
        """Return whether nothing was written."""
        return not self.space.changed()

    def same_memory(self, other: TrialCpu) -> bool:
        """Return whether two CPUs have written the same."""
        return self.written() == other.written()

    def written(self) -> dict[str, bytes]:
        """Return the pages that were written, by name."""
        return self.space.changed()

    def load_numbered(self, states: Sequence[State], number: int) -> None:
        """Load a state into the registers; no two states are equal."""
        self.load(states[number])
