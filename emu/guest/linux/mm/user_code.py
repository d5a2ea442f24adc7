"""The code of one process, for its patcher; and the pages where displaced instructions run."""

from __future__ import annotations

from typing import Final

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.mm.address_space import Area, Space
from emu.support.words import BadAddressError

_BELOW_STACK: Final = 16 << 20


class ProcessCode:
    """The memory of an address space, whichever process runs: an `emu.probe.patcher.CodeMemory`.

    A page that is written becomes the process's own (copy on write): the file and other processes
    keep theirs.
    """

    def __init__(self, engine: Engine, space: Space) -> None:
        self.engine = engine
        self.space = space

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        return self.space.peek(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write data, whatever the rights there.  Raises `BadAddressError`."""
        self.space.poke(address, data)

    def write_code(self, address: int, data: bytes) -> None:
        """Write bytes, whatever the rights there, and drop what was translated from them.

        Raises `BadAddressError`.
        """
        self.space.poke(address, data)
        self.engine.code.changed()


class SlotPages:
    """Pages of an address space, divided into slots of one size, where copies of instructions run.

    They lie above what mmap hands out, so that nothing else moves because of them, or below
    `below`.
    """

    def __init__(self, code: ProcessCode, size: int, name: str, below: int | None = None) -> None:
        self._code = code
        self._size = size
        self._name = name
        self._below = code.space.highest - _BELOW_STACK if below is None else below
        self._free: list[int] = []
        self._pages: list[int] = []
        self._contents: dict[int, bytes] = {}

    def ready(self) -> bool:
        """Return True: `take` may be called."""
        return True

    def take(self) -> int:
        """Return the address of a free slot.

        Raises `BadAddressError` if no address is free for another page.
        """
        if not self._free:
            self._add_page()
        return self._free.pop()

    def take_at(self, address: int) -> int:
        """Return a slot at a given address, in a page that is made for it."""
        self._add_page(address // PAGE * PAGE)
        self._free.remove(address)
        return address

    def _add_page(self, address: int | None = None) -> None:
        space = self._code.space
        if address is None:
            address = space.unmapped_area(PAGE, below=self._below)
        if address is None:
            raise BadAddressError(space.highest)
        space.map(Area(address, address + PAGE, Access.READ | Access.EXECUTE, name=self._name))
        self._pages.append(address)
        self._free += range(address + PAGE - self._size, address - 1, -self._size)

    def give_back(self, address: int) -> None:
        """Free a slot; what is in it stays until it is taken again."""
        self._free.append(address)

    def fill(self, address: int, code: bytes) -> None:
        """Write a slot's code, unless the slot has it already.

        Zeros follow it, as in a new page: what runs too far does not depend on earlier code.
        """
        code = code.ljust(self._size, b"\0")
        if self._contents.get(address) != code:
            self._code.space.poke(address, code)
            self._contents[address] = code

    def holds(self, address: int) -> bool:
        """Return whether an address is in one of the pages."""
        return address // PAGE * PAGE in self._pages

    def unmap_from(self, space: Space) -> None:
        """Take the pages out of another space, which got them by a fork."""
        for page in self._pages:
            space.unmap(page, page + PAGE)
