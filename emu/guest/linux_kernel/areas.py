"""The mappings of a process of a running kernel, and the paths of files.

The mappings (struct vm_area_struct) are the entries of a maple tree since Linux 6.1.  Its nodes
have 256 bytes; the low bits of a pointer say what kind of node it leads to.

Source: Linux 6.12 include/linux/maple_tree.h, lib/maple_tree.c (mte_node_type, mte_to_node).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux_kernel.files.btf import Btf
from emu.support.words import WORD_MASK, BadAddressError

_WORD: Final = 8
_NODE: Final = 256
_NODE_MASK: Final = ~(_NODE - 1) & WORD_MASK
_IS_NODE, _LOWEST_NODE = 2, 4096
_LEAF, _RANGE, _ARANGE = 1, 2, 3
# By kind of node: the offset and the number of its pivots, and the offset of its slots.
_LAYOUT: Final = {_LEAF: (8, 15, 128), _RANGE: (8, 15, 128), _ARANGE: (8, 9, 80)}
_DEEPEST: Final = 16
_LONGEST_PATH: Final = 64
_NAME_MAX: Final = 255
# VM_READ, VM_WRITE, VM_EXEC.
_ACCESS: Final = ((1, Access.READ), (2, Access.WRITE), (4, Access.EXECUTE))
_WANTED: Final = {
    "mm_struct": ("mm_mt.ma_root", "exe_file"),
    "vm_area_struct": ("vm_start", "vm_end", "vm_flags", "vm_pgoff", "vm_file"),
    "file": ("f_inode", "f_path.dentry"),
    "dentry": ("d_name.name", "d_parent"),
}


class Area(NamedTuple):
    """A mapping."""

    start: int
    end: int
    access: Access
    backing: int | None
    """Address of the inode of its file; None: it has no file."""
    offset: int
    """Offset of its start in the file, in bytes."""
    path: str
    """Path of the file; "" if it has none."""


class Areas:
    """Reads the mappings of processes."""

    def __init__(self, engine: Engine, btf: Btf) -> None:
        """Look the members up.  Raises `BtfError` if one is missing."""
        self._engine = engine
        self._offset = {
            f"{name}.{member}": btf.offset(name, member) for name, members in _WANTED.items() for member in members
        }

    def _word(self, address: int, member: str) -> int:
        return self._engine.load(address + self._offset[member], _WORD)

    def of(self, mm: int) -> list[Area]:
        """Return the mappings of an address space (struct mm_struct), by address."""
        root = self._word(mm, "mm_struct.mm_mt.ma_root")
        found = []
        for vma in self._entries(root, 0):
            try:
                found.append(self.area(vma))
            except BadAddressError:
                continue
        return sorted(found)

    def executable(self, mm: int) -> int:
        """Return the address of the inode of a process's program, 0 if it has none."""
        file = self._word(mm, "mm_struct.exe_file")
        return self._word(file, "file.f_inode") if file else 0

    def program(self, mm: int) -> str:
        """Return the path of a process's program, "" if it has none."""
        file = self._word(mm, "mm_struct.exe_file")
        return self._path(self._word(file, "file.f_path.dentry")) if file else ""

    def _entries(self, entry: int, depth: int) -> Iterator[int]:
        """Yield the mappings below an entry of the tree."""
        if not entry or depth > _DEEPEST:
            return
        if entry & 3 != _IS_NODE and depth == 0 and entry > _LOWEST_NODE:
            yield entry
            return
        kind = entry >> 3 & 0xF
        if kind not in _LAYOUT:
            return
        pivots_at, count, slots_at = _LAYOUT[kind]
        node = self._engine.read(entry & _NODE_MASK, _NODE)
        pivots = struct.unpack_from(f"<{count}Q", node, pivots_at)
        slots = struct.unpack_from(f"<{count + 1}Q", node, slots_at)
        for index, slot in enumerate(slots):
            # After the last pivot that is set there is one slot more; the rest of the node is not used.
            last = index == count or (index > 0 and not pivots[index])
            if slot > _LOWEST_NODE and not (index == count and kind == _LEAF and slot >> 47 == 0):
                if kind == _LEAF:
                    yield slot
                else:
                    yield from self._entries(slot, depth + 1)
            if last:
                return

    def area(self, vma: int) -> Area:
        """Return a mapping by its struct vm_area_struct.  Raises `BadAddressError`."""
        start, end, flags, offset, file = (
            self._word(vma, f"vm_area_struct.{name}")
            for name in ("vm_start", "vm_end", "vm_flags", "vm_pgoff", "vm_file")
        )
        access = Access(0)
        for bit, one in _ACCESS:
            if flags & bit:
                access |= one
        if not file:
            return Area(start, end, access, None, 0, "")
        inode = self._word(file, "file.f_inode")
        return Area(start, end, access, inode, offset * PAGE, self._path(self._word(file, "file.f_path.dentry")))

    def _path(self, dentry: int) -> str:
        names: list[str] = []
        while len(names) < _LONGEST_PATH:
            parent = self._word(dentry, "dentry.d_parent")
            if parent == dentry:
                break
            names.append(self._string(self._word(dentry, "dentry.d_name.name")))
            dentry = parent
        return "/" + "/".join(reversed(names))

    def _string(self, address: int) -> str:
        data = b""
        while b"\0" not in data and len(data) <= _NAME_MAX:
            size = min(64, PAGE - (address + len(data)) % PAGE)
            data += self._engine.read(address + len(data), size)
        return data.split(b"\0", 1)[0].decode("utf-8", "replace")
