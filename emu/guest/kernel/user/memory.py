"""Address spaces of the kernel guest, read and written by the emulator, whichever process runs.

Reading uses the kernel's own structures: the page table if a page is present, else the file that
the page comes from.  Writing changes only one address space: the kernel first makes a private copy
of the page (proc_rwmem_page), and the emulator writes to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.kernel.outside_calls import OutsideCalls
from emu.guest.kernel.view import KernelView
from emu.support.words import BadAddressError

# The largest number of names in a path.
_NAMES_DEEPEST: Final = 32


class File(NamedTuple):
    """A file of the guest.

    It has its vnode, and a number that distinguishes it from an earlier file with the same vnode.
    """

    vnode: int
    number: int
    size: int
    changed: int


class Area(NamedTuple):
    """An entry of an address space's map."""

    start: int
    end: int
    access: Access
    vnode: int
    """0: the area has no file and is filled with zeros."""
    offset: int
    filesz: int
    """Bytes that come from the file; zeros follow."""

    @property
    def backing(self) -> int | None:
        """The vnode of the file that it maps, None for memory without one."""
        return self.vnode or None


class Space(NamedTuple):
    """An address space (struct vmspace)."""

    address: int


class UserMemory:
    """All address spaces."""

    def __init__(self, guest: KernelView, outside: OutsideCalls) -> None:
        self._guest = guest
        self._call = outside.call
        self._engine = guest.engine
        self._load = guest.engine.load
        self._word = guest.isa.word
        self.offset = guest.introspection.offset
        self._paging = guest.isa.paging
        self._own: set[tuple[Space, int]] = set()
        """Pages that were made their space's own."""

    # -- files

    def file(self, vnode: int) -> File:
        """Return the file of a vnode."""
        node = self._load(vnode + self.offset["V_DATA"], self._word)
        number, size, changed = (self._load(node + self.offset[name], 8) for name in ("MN_ID", "MN_SIZE", "MN_MTIME"))
        return File(vnode, number, size, changed)

    def content(self, vnode: int) -> bytes:
        """Return the content of a regular file."""
        size = self.file(vnode).size
        return b"".join(self._file_page(vnode, index) for index in range(-(-size // PAGE)))[:size]

    def _file_page(self, vnode: int, index: int) -> bytes:
        node = self._load(vnode + self.offset["V_DATA"], self._word)
        pages, count = (self._load(node + self.offset[name], self._word) for name in ("MN_PAGES", "MN_NPAGES"))
        physical = self._load(pages + self._word * index, self._word) if index < count else 0
        return bytes(self._engine.memory.ram[physical : physical + PAGE]) if physical else bytes(PAGE)

    def path(self, vnode: int) -> str:
        """Return a file's path, from the name cache (vn_fullpath).

        It is "" if the cache has forgotten it.
        """
        root = self._load(self._guest.image.symbol("rootvnode").value, self._word)
        names: list[str] = []
        while vnode != root and len(names) < _NAMES_DEEPEST:
            entry = self._load(vnode + self.offset["V_CACHE_DST"], self._word)
            if not entry:
                return ""
            length = self._load(entry + self.offset["NC_NLEN"], 1)
            names.append(self._engine.read(entry + self.offset["NC_NAME"], length).decode("utf-8", "replace"))
            vnode = self._load(entry + self.offset["NC_DVP"], self._word)
        return "/" + "/".join(reversed(names))

    # -- maps

    def areas(self, space: Space) -> Iterator[Area]:
        """Return the mapped areas, by address."""
        load, offset, word = self._load, self.offset, self._word
        entry = load(space.address + offset["VM_ENTRIES"], word) if space.address else 0
        while entry:
            yield Area(
                load(entry + offset["ME_START"], word),
                load(entry + offset["ME_END"], word),
                Access(load(entry + offset["ME_PROTECTION"], 4)),
                load(entry + offset["ME_VNODE"], word),
                load(entry + offset["ME_OFFSET"], 8),
                load(entry + offset["ME_FILESZ"], 8),
            )
            entry = load(entry + offset["ME_LINKS"], word)

    def area_at(self, space: Space, address: int) -> Area | None:
        """Return the area that contains an address."""
        return next((area for area in self.areas(space) if area.start <= address < area.end), None)

    # -- pages

    def physical(self, space: Space, address: int, access: Access = Access.READ) -> int | None:
        """Return the physical address.

        None if the page is not present, or does not allow that access.
        """
        if not space.address:
            return None
        table = self._load(space.address + self.offset["VM_PMAP"] + self.offset["PMAP_ROOT"], self._word)
        entry = 0

        def word(physical: int) -> int:
            nonlocal entry
            entry = self._engine.load(self._guest.isa.kernel_base + physical, 8)
            return entry

        found = self._paging.translate(word, self._paging.root(table), address)
        if access is Access.WRITE and entry & self._paging.writable_mask != self._paging.writable:
            return None
        return found

    def read(self, space: Space, address: int, size: int) -> bytes:
        """Read bytes, also of pages that are not in memory yet.  Raises `BadAddressError`."""
        data = b""
        while len(data) < size:
            step = min(size - len(data), PAGE - address % PAGE)
            data += self._read_page(space, address, step)
            address += step
        return data

    def _read_page(self, space: Space, address: int, size: int) -> bytes:
        physical = self.physical(space, address)
        if physical is not None:
            return bytes(self._engine.memory.ram[physical : physical + size])
        area = self.area_at(space, address)
        if area is None:
            raise BadAddressError(address)
        within = address - area.start
        if not area.vnode or within >= area.filesz:
            return bytes(size)
        offset = area.offset + within
        found = self._file_page(area.vnode, offset // PAGE)[offset % PAGE :][:size]
        return found[: area.filesz - within].ljust(size, b"\0")

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Write bytes, only in this address space.  Raises `BadAddressError`."""
        done = 0
        while done < len(data):
            step = min(len(data) - done, PAGE - address % PAGE)
            physical = self._own_page(space, address) + address % PAGE
            self._engine.memory.ram[physical : physical + step] = data[done : done + step]
            self._engine.code.forget(physical, step)
            address += step
            done += step

    def _own_page(self, space: Space, address: int) -> int:
        key = space, address // PAGE
        if key in self._own and (known := self.physical(space, address)) is not None:
            return known // PAGE * PAGE
        physical = self._call("proc_rwmem_page", space.address, address)
        if not physical:
            raise BadAddressError(address)
        self._own.add(key)
        return physical

    def take_over(self, space: Space, address: int) -> None:
        """Note that the kernel has made a private page for this address space."""
        self._own.add((space, address // PAGE))

    def forget(self, space: Space) -> set[tuple[Space, int]]:
        """Forget and return a space's private pages, which a child shares now or which are gone."""
        pages = {key for key in self._own if key[0] == space}
        self._own -= pages
        return pages

    def own_again(self, pages: set[tuple[Space, int]]) -> None:
        """Mark pages as private to a space again, as far as they still exist."""
        for space, page in sorted(pages):
            if self._call("proc_rwmem_page", space.address, page * PAGE):
                self._own.add((space, page))
