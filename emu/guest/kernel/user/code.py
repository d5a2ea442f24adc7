"""The memory of a process of the kernel guest, and the scratch pages in it."""

from __future__ import annotations

from emu.engine.memory.pages import PAGE
from emu.guest.kernel.outside_calls import OutsideCalls
from emu.guest.kernel.user.memory import Space, UserMemory
from emu.support.words import BadAddressError


class UserCode:
    """The memory of one address space.  Implements `emu.guest.processes.Code`."""

    def __init__(self, memory: UserMemory, space: Space) -> None:
        self._memory = memory
        self._space = space

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        return self._memory.read(self._space, address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write, whatever the access rights are.  Raises `BadAddressError`."""
        self._memory.write(self._space, address, data)

    write_code = write


class ScratchPages:
    """Pages where displaced instructions run, below the stack (fasttrap_scraddr).

    A page can be made only between two runs: if there is none, the run is ended, and the caller
    tries again.
    """

    def __init__(self, memory: UserMemory, outside: OutsideCalls, space: Space, size: int) -> None:
        self._memory = memory
        self._outside = outside
        self._space = space
        self._size = size
        self._free: list[int] = []
        self._contents: dict[int, bytes] = {}
        self.pages: list[int] = []
        self._full = False

    def _add_page(self) -> None:
        offset = self._memory.offset
        address = offset["USRSTACK"] - offset["MAXSSIZ"] - PAGE * (len(self.pages) + 1)
        if not self._outside.call("fasttrap_scraddr", self._space.address, address):
            self._full = True
            return
        self._memory.take_over(self._space, address)
        self.pages.append(address)
        self._free += range(address + PAGE - self._size, address - 1, -self._size)

    def ready(self) -> bool:
        """Return whether `take` may be called.

        False: room is being made, and the caller must try again.
        """
        if not self._free and not self._full:
            self._outside.soon(self._add_page)
            return False
        return True

    def take(self) -> int:
        """Return the address of a free slot.  Raises `BadAddressError` if there is no room."""
        if not self._free:
            raise BadAddressError(self._memory.offset["USRSTACK"])
        return self._free.pop()

    def give_back(self, address: int) -> None:
        """Free a slot."""
        self._free.append(address)

    def fill(self, address: int, code: bytes) -> None:
        """Write a slot's code, unless the slot has it already."""
        if self._contents.get(address) != code:
            self._memory.write(self._space, address, code)
            self._contents[address] = code
