"""The data of the user's patcher at moments of its runs, for a handler that reads them."""

from __future__ import annotations

from emu.elf.image import SegmentFlag
from emu.guest.function import STACK, STACK_SIZE
from trapline.lab.objects.user_code import UserCode

Snapshot = tuple[tuple[int, bytes], ...]


class Snapshots:
    """The patcher's data at moments of its runs, by number: equal data have one number.

    Its data are what the objects may write, what was allocated, and its stack.
    """

    def __init__(self, code: UserCode) -> None:
        self._code = code
        self._numbers: dict[Snapshot, int] = {}
        self._all: list[Snapshot] = []
        self.take()

    def take(self) -> int:
        """Return the number of the present data."""
        found = self.present()
        number = self._numbers.setdefault(found, len(self._all))
        if number == len(self._all):
            self._all.append(found)
        return number

    def present(self) -> Snapshot:
        """Return the present data: addresses, and bytes."""
        code = self._code
        segments = [(one.vaddr, one.memsz) for one in code.image.segments if one.flags & SegmentFlag.WRITE]
        ranges = (*segments, *code.heaps, (STACK - STACK_SIZE, STACK_SIZE))
        return tuple((address, code.guest.engine.read(address, size)) for address, size in ranges)

    def put(self, snapshot: int | Snapshot) -> None:
        """Put data back."""
        for address, data in self._all[snapshot] if isinstance(snapshot, int) else snapshot:
            self._code.guest.engine.memory.write(address, data)
