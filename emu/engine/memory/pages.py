"""An address space kept by the host, for guests without page tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from emu.engine.errors import EngineError
from emu.engine.memory.access import Access

PAGE = 4096


class CodeChangesError(Exception):
    """Code that the CPU may be running is about to change.

    The run has to end first; then `change(pc)` is called, and the page is looked up again.
    """

    def __init__(self, change: Callable[[int], object]) -> None:
        super().__init__()
        self.change = change


def round_up(size: int) -> int:
    """Return a size rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


class Window(NamedTuple):
    """`size` bytes from virtual address `start` on, which are in RAM at `offset`."""

    start: int
    size: int
    offset: int


class AddressSpace(Protocol):
    """A mapping of virtual addresses."""

    @property
    def readable(self) -> Mapping[int, int]:
        """Virtual page number -> physical address, of the pages that can be read as they are."""
        ...

    @property
    def writable(self) -> Mapping[int, int]:
        """Virtual page number -> physical address, of the pages that can be written as they are."""
        ...

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Return the physical address and its rights; None: `access` is not allowed.

        Raises `CodeChangesError`.
        """
        ...

    def reach(self, address: int, access: Access) -> int | None:
        """Return the physical address for the host's own access; None: there is none."""
        ...

    def runs(self) -> Iterable[tuple[int, int, int]]:
        """Return (virtual address, size, physical address) of ranges that never move in RAM."""
        ...

    def forget_code(self, physical: int, size: int) -> None:
        """Forget what was translated from RAM that the host is about to write."""
        ...


class PageMap:
    """Virtual pages, each on a page of RAM of its own."""

    def __init__(self) -> None:
        self.frames: dict[int, int] = {}
        """Virtual page number -> physical address."""
        self.readable = self.writable = self.frames
        self._access: dict[int, Access] = {}
        self._next = PAGE  # page 0 stays blank: see Engine._fill_from
        self.on_change: Callable[[], None] = lambda: None
        """Called when something was mapped."""

    def map(self, address: int, size: int, access: Access) -> None:
        """Map the pages that hold `size` bytes from `address` on.

        If a page was mapped before, the access is added.
        """
        for page in range(address // PAGE, -(-(address + size) // PAGE)):
            if page not in self.frames:
                self.frames[page] = self._next
                self._next += PAGE
            self._access[page] = self._access.get(page, Access(0)) | access
        self.on_change()

    def runs(self) -> Iterable[tuple[int, int, int]]:
        """Yield (virtual address, size, physical address) of contiguous pages, the latest first."""
        start = size = 0
        physical = -1
        for page, frame in sorted(self.frames.items(), key=lambda item: -item[1]):
            if size and page * PAGE == start - PAGE and frame == physical - PAGE:
                start, size, physical = start - PAGE, size + PAGE, physical - PAGE
                continue
            if size:
                yield start, size, physical
            start, size, physical = page * PAGE, PAGE, frame
        if size:
            yield start, size, physical

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Return the physical address and the access of a virtual one, None if not allowed."""
        frame = self.frames.get(address // PAGE)
        granted = self._access.get(address // PAGE, Access(0))
        return None if frame is None or access not in granted else (frame + address % PAGE, granted)

    def reach(self, address: int, access: Access) -> int | None:  # noqa: ARG002  the host may do everything
        """Return the physical address of a virtual one, None if it is not mapped."""
        frame = self.frames.get(address // PAGE)
        return None if frame is None else frame + address % PAGE

    def forget_code(self, physical: int, size: int) -> None:
        """Do nothing: the code of such a guest is written by `emu.engine.code.Code.write`."""

    def check(self, ram_size: int) -> None:
        """Raise `EngineError` if more is mapped than there is RAM."""
        if self._next > ram_size:
            raise EngineError(f"{self._next >> 20} MiB are mapped, but the machine has {ram_size >> 20} MiB of RAM")
