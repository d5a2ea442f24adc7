"""DIF's 64-bit address space: DTrace's own memory and the guest's.

Strings, variables, buffers and scratch space live in `Region`s, each with an address, so that a
value passed by reference is a plain number wherever it points.  Their addresses are canonical on
none of the ISAs (the sign extension of x86-64 and of sv39 fails, and AArch64 has no 60-bit
addresses): no guest can have memory there.

A load that fails sets flags and returns 0, as `dtrace_load*()` under NOFAULT does (FreeBSD
dtrace.c, "Safe memory access"); nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from emu.bad_address import BadAddressError
from emu.cpu_core import CpuCore
from emu.guest.base import Guest
from emu.plain import Pinned, words
from trapline.framework.faults import BADADDR, BADALIGN

DTRACE_BASE: Final = 0x0D7A_CE00_0000_0000
REGION_SHIFT: Final = 32
OFFSET_MASK: Final = (1 << REGION_SHIFT) - 1
# Zeroes after strings: a translation copies strings into arrays by the array's size, which may be larger.
SLACK: Final = 256
# The number of regions that machine code finds by itself; only Python finds the others.
REGIONS_MAX: Final = 4096
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

    def __init__(self, base: int, data: bytearray, writable: Writable | None) -> None:
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
        self._regions: list[Region | None] = []
        self._free: list[int] = []
        """A heap of the numbers of regions that were released: the lowest is given out first."""
        self.table = words(2 * REGIONS_MAX)
        """Address and size of each region, by its number; 0 and 0: there is none."""
        self._strings = self.allocate(bytearray(_STRINGS))
        self._strings_end = 0
        """End of the strings in the newest region for them, with zeroes behind."""
        self._interned: dict[str, int] = {}
        self._strict = guest.isa.strict_alignment
        self._is_kernel = guest.isa.is_kernel_address

    def allocate(self, data: bytearray, writable: Writable | None = None) -> Region:
        """Give `data` an address."""
        if self._free:
            index = heappop(self._free)
        else:
            index = len(self._regions)
            self._regions.append(None)
        region = Region(DTRACE_BASE + (index << REGION_SHIFT), data, writable)
        self._regions[index] = region
        if index < REGIONS_MAX:
            self.table[2 * index], self.table[2 * index + 1] = region.host, len(data)
        return region

    def release(self, region: Region) -> None:
        """Release a region's address; another region may get it."""
        index = (region.base - DTRACE_BASE) >> REGION_SHIFT
        self._regions[index] = None
        heappush(self._free, index)
        if index < REGIONS_MAX:
            self.table[2 * index] = self.table[2 * index + 1] = 0

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
        index = (address - DTRACE_BASE) >> REGION_SHIFT
        return self._regions[index] if 0 <= index < len(self._regions) else None

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
        offset = address & OFFSET_MASK
        end = region.data.find(0, offset, offset + limit)
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
            offset = address & OFFSET_MASK
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
        offset = address & OFFSET_MASK
        region.data[offset : offset + len(data)] = data

    def can_store(self, address: int, size: int) -> bool:
        """Return whether DIF may store there, besides scratch space: into a variable's data."""
        region = self._region(address)
        return region is not None and region.writable is not None and region.writable(address & OFFSET_MASK, size)

    def is_own(self, address: int, size: int) -> bool:
        """Return whether a range is DTrace's own, which every consumer may read."""
        region = self._region(address)
        return region is not None and (address & OFFSET_MASK) + size <= len(region.data)

    def write_user(self, address: int, data: bytes) -> None:
        """Write to the current process (dtrace_copyout)."""
        try:
            self._check_user(address, len(data))
            self._guest.user_store(address, data)
        except BadAddressError as error:
            self.fault(BADADDR, error.address)
