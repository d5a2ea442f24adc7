"""Guest memory as the host sees it: one buffer of RAM, and the way from a virtual address to it."""

from __future__ import annotations

import ctypes
import mmap

from emu.engine.pages import PAGE, PageMap
from emu.guest.base import BadAddressError
from emu.isa.base import Isa

_WORD = 8
_NO_LINEAR_MAP = 1 << 65


class Memory:
    """RAM at physical address 0, shared with Unicorn, and loads and stores at virtual addresses.

    Virtual addresses are translated by the guest's page tables, or by `pages` where the host keeps the address space.

    Reading never disturbs the guest: page tables are walked here, not by Unicorn, whose own walk leaves marks in the
    CPU state (cr2, a pending exception).
    """

    def __init__(self, isa: Isa, size: int, cpu_words: memoryview, pages: PageMap | None = None) -> None:
        self._buffer = mmap.mmap(-1, size)
        self.size = size
        self.pointer = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self.ram = memoryview(self._buffer)
        self._words = self.ram.cast("Q")
        self._frames = None if pages is None else pages.frames
        self._base = isa.kernel_base if pages is None else _NO_LINEAR_MAP
        self._walk = isa.translate
        self._cpu = cpu_words
        slots = isa.registers.slots
        self._user_root = slots[isa.registers.root]
        self._kernel_root = slots[isa.registers.kernel_root]

    def physical_word(self, address: int) -> int:
        """Return the 64-bit word at an aligned physical address; 0 outside RAM, which no table entry is."""
        return self._words[address >> 3] if address + _WORD <= self.size else 0

    def translate(self, address: int, root: int | None = None) -> int | None:
        """Return the physical address of a virtual one, None if unmapped; `root` None: in the current address space."""
        if self._frames is not None:
            frame = self._frames.get(address >> 12)
            return None if frame is None else frame + (address & 0xFFF)
        if root is None:
            root = self._cpu[self._kernel_root if address >> 63 else self._user_root]
        physical = self._walk(self.physical_word, root, address)
        return physical if physical is not None and physical < self.size else None

    def load(self, address: int, size: int) -> int:
        """Return an unsigned integer of `size` bytes.  Raises `BadAddressError`."""
        physical = address - self._base
        if 0 <= physical <= self.size - size:  # the kernel's linear map: one comparison, the common case
            if size == _WORD and not physical & 7:
                return self._words[physical >> 3]
            return int.from_bytes(self.ram[physical : physical + size], "little")
        if size == _WORD and not address & 7:
            return self._words[self._mapped(address) >> 3]
        return int.from_bytes(self.read(address, size), "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low `size` bytes of `value`.  Raises `BadAddressError`; then nothing is written."""
        physical = address - self._base
        if 0 <= physical <= self.size - size:
            if size == _WORD and not physical & 7:
                self._words[physical >> 3] = value
            else:
                self.ram[physical : physical + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            return
        if size == _WORD and not address & 7:
            self._words[self._mapped(address) >> 3] = value
            return
        self.write(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def read(self, address: int, size: int, root: int | None = None) -> bytes:
        """Return `size` bytes.  Raises `BadAddressError` with the first address that is not mapped."""
        return b"".join(bytes(self.ram[start:end]) for start, end in self._pieces(address, size, root))

    def write(self, address: int, data: bytes, root: int | None = None) -> None:
        """Write bytes.  Raises `BadAddressError`; then nothing is written."""
        done = 0
        for start, end in self._pieces(address, len(data), root):
            self.ram[start:end] = data[done : done + end - start]
            done += end - start

    def _mapped(self, address: int) -> int:
        physical = self.translate(address)
        if physical is None:
            raise BadAddressError(address)
        return physical

    def _pieces(self, address: int, size: int, root: int | None) -> list[tuple[int, int]]:
        pieces = []
        end = address + size
        while address < end:
            physical = self.translate(address, root)
            if physical is None:
                raise BadAddressError(address)
            step = min(end - address, PAGE - address % PAGE)
            if physical + step > self.size:
                raise BadAddressError(address)
            pieces.append((physical, physical + step))
            address += step
        return pieces
