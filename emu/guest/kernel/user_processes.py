"""A process of the kernel guest, its threads, its memory, and the scratch pages in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.bad_address import BadAddressError
from emu.engine.pages import PAGE
from emu.guest import processes
from emu.guest.kernel.user_memory import File, Space, UserMemory

if TYPE_CHECKING:
    from emu.guest.kernel.userland import Userland


class Thread:
    """A thread (struct thread)."""

    call_name = ""

    def __init__(self, address: int, process: Process) -> None:
        self.address = address
        self.process = process


class Process:
    """A process (struct proc)."""

    def __init__(self, userland: Userland, address: int, pid: int) -> None:
        self._userland = userland
        self.address = address
        self.pid = pid
        self.alive = True
        self.threads: list[Thread] = []

    @property
    def parent(self) -> Process | None:
        """Return the process that made it."""
        return self._userland.process_at(self._userland.word(self.address, "P_PPTR"))

    @property
    def space(self) -> Space:
        """Return its address space."""
        return Space(self._userland.word(self.address, "P_VMSPACE"))

    @property
    def executable(self) -> File | None:
        """Return the program's file."""
        vnode = self._userland.word(self.address, "P_TEXTVP")
        return self._userland.memory.file(vnode) if vnode else None

    @property
    def path(self) -> str:
        """Return the path of the program."""
        vnode = self._userland.word(self.address, "P_TEXTVP")
        return self._userland.path(vnode) if vnode else ""


def own(process: processes.Process) -> Process:
    """Return a process of the kernel guest.  Raises TypeError for another guest's."""
    if not isinstance(process, Process):
        raise TypeError(f"process {process.pid} is not one of the kernel guest")
    return process


class UserCode:
    """The memory of one address space.  Implements `emu.guest.processes.Code`."""

    def __init__(self, memory: UserMemory, space: Space) -> None:
        self._memory = memory
        self._space = space

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        return self._memory.read(self._space, address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write, whatever the rights there.  Raises `BadAddressError`."""
        self._memory.write(self._space, address, data)

    write_code = write


class ScratchPages:
    """Pages where displaced instructions run, below the room of the stack (fasttrap_scraddr).

    A page can be made between two runs only: where there is none, the run is ended, and the caller
    tries again.
    """

    def __init__(self, userland: Userland, space: Space, size: int) -> None:
        self._userland = userland
        self._space = space
        self._size = size
        self._free: list[int] = []
        self._contents: dict[int, bytes] = {}
        self.pages: list[int] = []
        self._full = False

    def _add_page(self) -> None:
        offset = self._userland.memory.offset
        address = offset["USRSTACK"] - offset["MAXSSIZ"] - PAGE * (len(self.pages) + 1)
        if not self._userland.guest.call("fasttrap_scraddr", self._space.address, address):
            self._full = True
            return
        self._userland.memory.take_over(self._space, address)
        self.pages.append(address)
        self._free += range(address + PAGE - self._size, address - 1, -self._size)

    def ready(self) -> bool:
        """Return whether `take` may be called.

        False: room is being made, and the caller is to try again.
        """
        if not self._free and not self._full:
            self._userland.guest.soon(self._add_page)
            return False
        return True

    def take(self) -> int:
        """Return the address of a free slot.  Raises `BadAddressError` if there is no room."""
        if not self._free:
            raise BadAddressError(self._userland.memory.offset["USRSTACK"])
        return self._free.pop()

    def give_back(self, address: int) -> None:
        """Free a slot."""
        self._free.append(address)

    def fill(self, address: int, code: bytes) -> None:
        """Write a slot's code, unless the slot holds it already."""
        if self._contents.get(address) != code:
            self._userland.memory.write(self._space, address, code)
            self._contents[address] = code
