"""Guest memory for the host: one buffer of RAM, and the translation of virtual addresses to it.

Loads and stores of aligned words are on the path of every breakpoint, so they take the shortest
path.
"""

from __future__ import annotations

import ctypes
import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, AddressSpace, Window
from emu.isa.base import Isa
from emu.support.plain import zeroed
from emu.support.words import WORD_MASK, BadAddressError

_WORD = 8


class Memory(ABC):
    """RAM at physical address 0, shared with Unicorn, and loads and stores at virtual addresses.

    Reading never disturbs the guest: page tables are walked here, not by Unicorn, whose own walk
    leaves marks in the CPU state (cr2, a pending exception).
    """

    def __init__(self, size: int, shared: Memory | None = None) -> None:
        # Private: a forked copy of this process has a guest of its own.
        fresh = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._buffer: mmap.mmap = shared._buffer if shared else mmap.mmap(-1, size, flags=fresh)  # noqa: SLF001
        self.size = size
        self.pointer = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self.ram = memoryview(self._buffer)
        self._words = self.ram.cast("Q")

    @abstractmethod
    def translate(self, address: int, root: int | None = None, access: Access = Access.READ) -> int | None:
        """Return the physical address of a virtual one, None if unmapped.

        `root` None: in the current address space.

        `access` is the kind of access that the host is about to make.
        """

    @abstractmethod
    def load(self, address: int, size: int) -> int:
        """Return an unsigned integer of `size` bytes.  Raises `BadAddressError`."""

    @abstractmethod
    def store(self, address: int, size: int, value: int) -> None:
        """Store the low `size` bytes of `value`.

        Raises `BadAddressError`; then nothing is written.
        """

    @abstractmethod
    def windows(self) -> Iterable[Window]:
        """Return ranges of virtual addresses that are RAM in every address space."""

    def read(self, address: int, size: int, root: int | None = None) -> bytes:
        """Return `size` bytes.

        Raises `BadAddressError` with the first address that is not mapped.
        """
        return b"".join(bytes(self.ram[start:end]) for start, end in self.places(address, size, root=root))

    def write(self, address: int, data: bytes, root: int | None = None) -> None:
        """Write bytes.  Raises `BadAddressError`; then nothing is written."""
        done = 0
        for start, end in self.places(address, len(data), Access.WRITE, root):
            self.ram[start:end] = data[done : done + end - start]
            done += end - start

    def _load_bytes(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def _store_bytes(self, address: int, size: int, value: int) -> None:
        self.write(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def places(
        self, address: int, size: int, access: Access = Access.READ, root: int | None = None
    ) -> list[tuple[int, int]]:
        """Return the places of virtual addresses in RAM, a (start, end) for each page.

        Raises `BadAddressError`.
        """
        pieces = []
        end = address + size
        while address < end:
            physical = self.translate(address, root, access)
            if physical is None:
                raise BadAddressError(address)
            step = min(end - address, PAGE - address % PAGE)
            if physical + step > self.size:
                raise BadAddressError(address)
            pieces.append((physical, physical + step))
            address += step
        return pieces


class GuestMemory(Memory):
    """Memory of a guest with its own page tables, whose kernel maps all RAM at one address."""

    def __init__(self, size: int, isa: Isa, cpu_words: memoryview) -> None:
        super().__init__(size)
        self._base = isa.kernel_base
        self._walk = isa.paging.translate
        self._cpu = cpu_words
        slots = isa.registers.slots
        self._user_root = slots[isa.registers.root]
        self._kernel_root = slots[isa.registers.kernel_root]
        self._kernel_start = isa.kernel_start
        self._more: tuple[Window, ...] = ()

    def windows(self) -> Iterable[Window]:
        """Return the linear map, and the other registered ranges."""
        return (Window(self._base, self.size, 0), *self._more)

    def show(self, window: Window) -> None:
        """Register another range of kernel addresses that is contiguous in RAM."""
        self._more = (*self._more, window)

    def physical_word(self, address: int) -> int:
        """Return the 64-bit word at an aligned physical address.

        Returns 0 outside RAM, which is not a valid table entry.
        """
        return self._words[address >> 3] if address + _WORD <= self.size else 0

    def translate(self, address: int, root: int | None = None, access: Access = Access.READ) -> int | None:  # noqa: ARG002
        """Walk the page tables: the host may read and write everything that is mapped."""
        if root is None:
            for start, size, offset in self._more:
                if 0 <= address - start < size:
                    return address - start + offset
            root = self._cpu[self._kernel_root if address >= self._kernel_start else self._user_root]
        physical = self._walk(self.physical_word, root, address)
        return physical if physical is not None and physical < self.size else None

    def read(self, address: int, size: int, root: int | None = None) -> bytes:
        """Return bytes; from a window, without a page walk.  Raises `BadAddressError`."""
        physical = address - self._base
        if 0 <= physical <= self.size - size:
            return bytes(self.ram[physical : physical + size])
        for start, length, offset in self._more:
            if 0 <= address - start <= length - size:
                return bytes(self.ram[address - start + offset : address - start + offset + size])
        return super().read(address, size, root)

    def load(self, address: int, size: int) -> int:
        """Return an unsigned integer; from the linear map with one comparison."""
        physical = address - self._base
        if 0 <= physical <= self.size - size:
            if size == _WORD and not physical & 7:
                return self._words[physical >> 3]
            return int.from_bytes(self.ram[physical : physical + size], "little")
        return self._load_bytes(address, size)

    def store(self, address: int, size: int, value: int) -> None:
        """Store an integer; to the linear map with one comparison."""
        physical = address - self._base
        if not 0 <= physical <= self.size - size:
            self._store_bytes(address, size, value)
        elif size == _WORD and not physical & 7:
            self._words[physical >> 3] = value
        else:
            self.ram[physical : physical + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


class HostMemory(Memory):
    """Memory whose address space the host keeps; the RAM may be that of another CPU."""

    def __init__(self, size: int, space: AddressSpace, shared: Memory | None = None) -> None:
        super().__init__(size, shared)
        self.executed: memoryview = (
            shared.executed if isinstance(shared, HostMemory) else memoryview(zeroed(size // PAGE))
        )
        """A byte for each page of RAM: 1 once the CPU may have translated code of it.  Machine code reads it."""
        self.use(space)

    def use(self, space: AddressSpace) -> None:
        """Make an address space the current one."""
        self.space = space
        self._readable = space.readable
        self._writable = space.writable

    def windows(self) -> Iterable[Window]:
        """Return the runs of pages."""
        return (Window(start, size, physical) for start, size, physical in self.space.runs())

    def translate(self, address: int, root: int | None = None, access: Access = Access.READ) -> int | None:  # noqa: ARG002
        """Look the page up; the current address space is the only one."""
        frame = (self._writable if access is Access.WRITE else self._readable).get(address >> 12)
        return self.space.reach(address, access) if frame is None else frame + (address & 0xFFF)

    def read(self, address: int, size: int, root: int | None = None) -> bytes:
        """Return bytes; from one page that is known, at once.  Raises `BadAddressError`."""
        frame, offset = self._readable.get(address >> 12), address & 0xFFF
        if frame is None or offset > PAGE - size:
            return super().read(address, size, root)
        return bytes(self.ram[frame + offset : frame + offset + size])

    def places(
        self, address: int, size: int, access: Access = Access.READ, root: int | None = None
    ) -> list[tuple[int, int]]:
        """Return the places of virtual addresses in RAM.

        Translated code of what is about to be written is forgotten.  Raises `BadAddressError`.
        """
        pieces = super().places(address, size, access, root)
        if access is Access.WRITE:
            for start, end in pieces:
                if self.executed[start >> 12]:
                    self.space.forget_code(start, end - start)
        return pieces

    def write(self, address: int, data: bytes, root: int | None = None) -> None:
        """Write bytes; to one page that is known and has no code, at once.

        Raises `BadAddressError`; then nothing is written.
        """
        frame, offset = self._writable.get(address >> 12), address & 0xFFF
        if frame is None or offset > PAGE - len(data) or self.executed[frame >> 12]:
            super().write(address, data, root)
        else:
            self.ram[frame + offset : frame + offset + len(data)] = data

    def load(self, address: int, size: int) -> int:
        """Return an unsigned integer."""
        frame, offset = self._readable.get(address >> 12), address & 0xFFF
        if frame is None or offset > PAGE - size:
            return self._load_bytes(address, size)
        if size == _WORD and not address & 7:
            return self._words[frame + offset >> 3]
        return int.from_bytes(self.ram[frame + offset : frame + offset + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Store an integer."""
        frame, offset = self._writable.get(address >> 12), address & 0xFFF
        if frame is None or offset > PAGE - size or self.executed[frame >> 12]:
            self._store_bytes(address, size, value)
        elif size == _WORD and not address & 7:
            self._words[frame + offset >> 3] = value & WORD_MASK
        else:
            self.ram[frame + offset : frame + offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
