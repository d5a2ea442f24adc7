"""The address spaces that the host keeps, and which of them one CPU uses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakKeyDictionary

from emu.engine.memory.memory import HostMemory, Memory
from emu.engine.memory.pages import AddressSpace
from emu.engine.qemu.tlb import Fills, SoftTlb
from emu.engine.state import Word


class Spaces:
    """The address spaces of one engine; `tlb` is None if the guest has page tables of its own."""

    def __init__(
        self, memory: Memory, tlb: SoftTlb | None, state: memoryview, forget_user_blocks: Callable[[], None]
    ) -> None:
        self._memory = memory
        self._tlb = tlb
        self._state = state
        self._forget_user_blocks = forget_user_blocks
        self._known: WeakKeyDictionary[AddressSpace, int] = WeakKeyDictionary()
        self._numbers = count(1)

    def use(self, space: AddressSpace) -> None:
        """Change to another address space; between two runs, or in a trap.

        Raises TypeError if the guest has page tables.
        """
        if not isinstance(self._memory, HostMemory) or self._tlb is None:
            raise TypeError("the guest has page tables of its own")
        self._memory.use(space)
        self._state[Word.SPACE] = self.number(space)
        self._tlb.use(space)
        self._forget_user_blocks()

    def fills(self, space: AddressSpace) -> Fills:
        """Return the known translations of an address space that the host keeps.

        Raises TypeError if the guest has page tables.
        """
        if self._tlb is None:
            raise TypeError("the guest has page tables of its own")
        return self._tlb.of(space)

    def forget(self, space: AddressSpace) -> None:
        """Forget an address space that the host keeps and uses no more."""
        if self._tlb is not None:
            self._tlb.forget(space)

    def number(self, space: AddressSpace) -> int:
        """Return the number of an address space, which is unique while the engine exists."""
        number = self._known.get(space)
        if number is None:
            number = self._known[space] = next(self._numbers)
        return number

    def flush_page(self, address: int) -> None:
        """Forget the translation of a page's address, because its mapping has changed."""
        if self._tlb is not None:
            self._tlb.flush_page(address)
