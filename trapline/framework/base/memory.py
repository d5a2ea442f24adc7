"""DIF's 64-bit address space: DTrace's own memory and the guest's.

Strings, variables, buffers and scratch space live in `Region`s, each with an address, so that a
value passed by reference is a plain number wherever it points.  On ISAs of 64 bits these addresses
are not canonical (the sign extension of x86-64 and of sv39 fails, and AArch64 has no 60-bit
addresses): no guest can have memory there.  On ISAs of 32 bits a pointer in memory has 4 bytes, so
they are below the kernel, where D, which may not read a process like this, can read nothing else.

A load that fails sets flags and returns 0, as `dtrace_load*()` under NOFAULT does (FreeBSD
dtrace.c, "Safe memory access"); nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from emu.displaced.cpu_core import CpuCore
from emu.guest.base import Guest
from emu.support.plain import Bytes, Pinned, words
from emu.support.words import BadAddressError
from trapline.framework.base.device import DeviceError
from trapline.framework.base.faults import BADADDR, BADALIGN

# Zeroes after strings: a translation copies strings into arrays by the array's size, which may be larger.
SLACK: Final = 256
# The number of slots that machine code finds by itself; only Python finds the others.
SLOTS_MAX: Final = 4096
# By the bytes of a pointer: the first address, the bits of an offset in a slot, the number of slots.  A region takes
# one slot or more.
_LAYOUTS: Final = {8: (0x0D7A_CE00_0000_0000, 32, 1 << 24), 4: (0x1000_0000, 19, SLOTS_MAX)}
# Size of the regions for permanent strings.
_STRINGS: Final = 1 << 18
_ADDRESS_MAX: Final = (1 << 64) - 1
# Strings are read in pieces of this size; it is a power of two, so that no piece crosses a page.
_CHUNK: Final = 64

# (offset, size) -> whether DIF may store there.
Writable = Callable[[int, int], bool]


class Region:
    """A piece of DTrace's own memory."""

    __slots__ = ("_pinned", "base", "data", "host", "writable")

    def __init__(self, base: int, data: Bytes, writable: Writable | None) -> None:
        self._pinned = Pinned(data)
        self.base = base
        """Its address for DIF."""
        self.host = self._pinned.address
        """Its address for machine code."""
        self.data = data
        self.writable = writable


class Memory:
    """Loads and stores as DIF does them."""

    def __init__(self, guest: Guest, core: CpuCore) -> None:
        self.core = core
        self._guest = guest
        self.base, self.shift, self._most = _LAYOUTS[guest.isa.word]
        self._slots: list[Region | None] = []
        """The region that each slot belongs to."""
        self._free: list[int] = []
        """A heap of the numbers of slots that were released: the lowest is given out first."""
        self.table = words(2 * SLOTS_MAX + 2)
        """The host's address of each slot and the bytes from there to its region's end, 0 and 0 if
        it has none; then `base` and `shift`."""
        self.table[2 * SLOTS_MAX], self.table[2 * SLOTS_MAX + 1] = self.base, self.shift
        self._strings = self.allocate(bytearray(_STRINGS))
        self._strings_end = 0
        """End of the strings in the newest region for them, with zeroes behind."""
        self._interned: dict[str, int] = {}
        self._strict = guest.isa.strict_alignment
        self._is_kernel = guest.isa.is_kernel_address

    def allocate(self, data: Bytes, writable: Writable | None = None) -> Region:
        """Give `data` an address.  Raises `DeviceError` ENOMEM if all are in use."""
        count = self._count(data)
        first = self._find(count)
        if first + count > self._most:
            raise DeviceError("ENOMEM", "no address is left for DTrace's own memory")
        self._slots += [None] * (first + count - len(self._slots))
        region = Region(self.base + (first << self.shift), data, writable)
        for slot in range(first, first + count):
            self._slots[slot] = region
            if slot < SLOTS_MAX:
                before = (slot - first) << self.shift
                self.table[2 * slot], self.table[2 * slot + 1] = region.host + before, len(data) - before
        return region

    def _count(self, data: Bytes) -> int:
        """Return the number of slots for a region."""
        return max(1, -(-len(data) >> self.shift))

    def _find(self, count: int) -> int:
        """Return the first of so many slots that are free."""
        while count == 1 and self._free:
            slot = heappop(self._free)
            if self._slots[slot] is None:  # a larger region may have taken it
                return slot
        free = 0
        for slot, region in enumerate(self._slots if count > 1 else ()):
            free = free + 1 if region is None else 0
            if free == count:
                return slot + 1 - count
        return len(self._slots) - free

    def release(self, region: Region) -> None:
        """Release a region's address; another region may get it."""
        first = (region.base - self.base) >> self.shift
        for slot in range(first, first + self._count(region.data)):
            self._slots[slot] = None
            heappush(self._free, slot)
            if slot < SLOTS_MAX:
                self.table[2 * slot] = self.table[2 * slot + 1] = 0

    def intern(self, text: str) -> int:
        """Return the address of a permanent string, such as a probe's name."""
        address = self._interned.get(text)
        if address is None:
            data = text.encode("utf-8", "surrogateescape") + b"\0"
            start, end = self._strings_end, self._strings_end + len(data)
            if end + SLACK > len(self._strings.data):
                self._strings = self.allocate(bytearray(max(_STRINGS, len(data) + SLACK)))
                start, end = 0, len(data)
            self._strings.data[start:end] = data
            self._strings_end = end
            address = self._interned[text] = self._strings.base + start
        return address

    def _region(self, address: int) -> Region | None:
        slot = (address - self.base) >> self.shift
        return self._slots[slot] if 0 <= slot < len(self._slots) else None

    def fault(self, flag: int, value: int) -> None:
        """Set a fault flag, and the value that caused it."""
        self.core.flags |= flag
        self.core.illval = value

    def load(self, address: int, size: int) -> int:
        """Load an unsigned number of 1, 2, 4 or 8 bytes (dtrace_load8 ... dtrace_load64)."""
        if self._strict and address & (size - 1):
            self.fault(BADALIGN, address)
            return 0
        return int.from_bytes(self.read(address, size), "little")

    def load_user(self, address: int, size: int) -> int:
        """Load an unsigned number from the current process (dtrace_fuword8 ... dtrace_fuword64)."""
        return int.from_bytes(self.read_user(address, size), "little")

    def read(self, address: int, size: int) -> bytes:
        """Read bytes; none after a fault."""
        try:
            return self._fetch(address, size)
        except BadAddressError as error:
            self.fault(BADADDR, error.address)
            return b""

    def read_user(self, address: int, size: int) -> bytes:
        """Read bytes of the current process (dtrace_copyin); none after a fault."""
        try:
            return self._fetch_user(address, size)
        except BadAddressError as error:
            self.fault(BADADDR, error.address)
            return b""

    def string(self, address: int, limit: int) -> bytes:
        """Read up to the NUL, which is omitted, but at most `limit` bytes."""
        region = self._region(address)
        if region is None:
            return self._string(self._fetch, address, limit)
        offset = address - region.base
        end = region.data.find(b"\0", offset, offset + limit)
        if end < 0:
            # In the kernel the bytes after a variable can be read: a text that fills a variable ends with it.
            end = min(offset + limit, len(region.data))
            if offset > end:
                self.fault(BADADDR, address)
        return bytes(region.data[offset:end])

    def user_string(self, address: int, limit: int) -> bytes:
        """Read a string of the current process, as `string` does."""
        return self._string(self._fetch_user, address, limit)

    def _fetch(self, address: int, size: int) -> bytes:
        region = self._region(address)
        if region is not None:
            offset = address - region.base
            if offset + size > len(region.data):
                raise BadAddressError(region.base + max(offset, len(region.data)))
            return bytes(region.data[offset : offset + size])
        if not self._is_kernel(address):  # FreeBSD's toxic range: below the kernel's lowest address
            raise BadAddressError(address)
        return self._guest.load(address, size)

    def _fetch_user(self, address: int, size: int) -> bytes:
        self._check_user(address, size)
        return self._guest.user_load(address, size)

    def _check_user(self, address: int, size: int) -> None:
        if address + size > _ADDRESS_MAX or self._is_kernel(address + size):
            raise BadAddressError(address)

    def _string(self, fetch: Callable[[int, int], bytes], address: int, limit: int) -> bytes:
        """Read a string piece by piece: the memory after its end need not be mapped."""
        found = b""
        while len(found) < limit:
            size = min(_CHUNK - address % _CHUNK, limit - len(found))
            try:
                piece = fetch(address, size)
            except BadAddressError:
                return found + self._bytewise(fetch, address, size)
            end = piece.find(0)
            if end >= 0:
                return found + piece[:end]
            found += piece
            address += size
        return found

    def _bytewise(self, fetch: Callable[[int, int], bytes], address: int, size: int) -> bytes:
        """Read a piece that is partly mapped, as the kernel does: up to its NUL or the fault."""
        piece = b""
        try:
            for place in range(address, address + size):
                byte = fetch(place, 1)
                if byte == b"\0":
                    return piece
                piece += byte
        except BadAddressError as error:
            self.fault(BADADDR, error.address)
        return piece

    def write(self, address: int, data: bytes) -> None:
        """Write into a region; the caller has checked that it may."""
        region = self._region(address)
        assert region is not None
        offset = address - region.base
        region.data[offset : offset + len(data)] = data

    def can_store(self, address: int, size: int) -> bool:
        """Return whether DIF may store there, besides scratch space: into a variable's data."""
        region = self._region(address)
        return region is not None and region.writable is not None and region.writable(address - region.base, size)

    def is_own(self, address: int, size: int) -> bool:
        """Return whether a range is DTrace's own, which every consumer may read."""
        region = self._region(address)
        return region is not None and address - region.base + size <= len(region.data)

    def write_user(self, address: int, data: bytes) -> None:
        """Write to the current process (dtrace_copyout)."""
        try:
            self._check_user(address, len(data))
            self._guest.user_store(address, data)
        except BadAddressError as error:
            self.fault(BADADDR, error.address)
