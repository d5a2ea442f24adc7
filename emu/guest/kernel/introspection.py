"""Reading the kernel guest's structures: the current thread, its process and its stack.

The kernel exports the offsets itself (`kernel_assym[]`, as FreeBSD's genassym makes them for
assembly), so this needs no debugging information.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.guest.base import Thread

_ENTRY = struct.Struct("<28sI")
_PAGE: Final = 4096
# Size in bytes of a process's name, with its NUL.
COMM_MAX = 20
_NO_THREAD = Thread(0, 0, 0, 0, "kernel")


def text_at(engine: Engine, address: int, limit: int) -> str:
    """Return the C string at an address of the kernel, `limit` bytes of it at most.

    It is read a page at a time: the page behind its last one need not be mapped.
    """
    data = b""
    while len(data) < limit and b"\0" not in data:
        size = min(_PAGE - address % _PAGE, limit - len(data))
        data += engine.read(address, size)
        address += size
    return data.split(b"\0", 1)[0].decode(errors="replace")


@lru_cache(maxsize=8)
def offsets(image: Image) -> Mapping[str, int]:
    """Return the offsets and sizes of the kernel's structures, in bytes, and a few counts."""
    address = image.symbol("kernel_assym").value
    known: dict[str, int] = {}
    while True:
        name, value = _ENTRY.unpack(image.read(address, _ENTRY.size))
        if not name.rstrip(b"\0"):
            return known
        known[name.rstrip(b"\0").decode()] = value
        address += _ENTRY.size


class Introspection:
    """Threads, processes and stacks of the kernel guest."""

    def __init__(self, engine: Engine, image: Image) -> None:
        self._engine = engine
        self._word = engine.isa.word
        self.offset = self._offset = offsets(image)
        """Offsets and sizes of the kernel's structures, by name."""
        self.current = self._current = image.symbol("pcpu0").value + self._offset["PC_CURTHREAD"]
        """Address of the word that points at the current thread."""
        self._allproc = image.symbol("allproc").value

    def thread(self) -> Thread:
        """Return the current thread; before there is one, thread 0 of process 0 named kernel."""
        load, offset, word = self._engine.load, self._offset, self._word
        address = load(self._current, word)
        process = load(address + offset["TD_PROC"], word) if address else 0
        if not process:
            return _NO_THREAD
        parent = load(process + offset["P_PPTR"], word)
        pid = self._int(process + offset["P_PID"])
        return Thread(
            address=address,
            tid=self._int(address + offset["TD_TID"]),
            pid=pid,
            ppid=self._int(parent + offset["P_PID"]) if parent else pid,
            execname=self._text(process + offset["P_COMM"], COMM_MAX),
            execargs=self._text(process + offset["P_ARGS"], max(0, self._int(process + offset["P_ARGS_SIZE"])), " "),
            uid=self._int(process + offset["P_UID"]),
            gid=self._int(process + offset["P_GID"]),
            errno=self._int(address + offset["TD_ERRNO"]),
        )

    def _int(self, address: int) -> int:
        value = self._engine.load(address, 4)
        return value - (1 << 32) if value >> 31 else value

    def _text(self, address: int, size: int, separator: str | None = None) -> str:
        data = self._engine.read(address, size)
        data = data.split(b"\0", 1)[0] if separator is None else data.rstrip(b"\0").replace(b"\0", separator.encode())
        return data.decode("utf-8", "replace")

    def kernel_chain(self, frame_pointer: int) -> list[int]:
        """Return the return addresses of a chain of frame pointers in the thread's kernel stack.

        As in FreeBSD's dtrace_getpcstack, the walk ends if the pointer leaves the stack or does not
        grow, or if the address is not a kernel's.  On RISC-V a leaf function, which may have been
        interrupted, saves only the frame pointer, in the place where others save ra: its frame has
        no return address, and the chain continues from it.
        """
        load, offset, word = self._engine.load, self._offset, self._word
        thread = load(self._current, word)
        if not thread:
            return []
        low = load(thread + offset["TD_KSTACK"], word)
        high = low + load(thread + offset["TD_KSTACK_SIZE"], word)
        calling = self._engine.isa.calling
        pcs = []
        while low <= frame_pointer + min(calling.frame_next, 0) and frame_pointer + word <= high:
            pc = load(frame_pointer + calling.frame_return, word)
            if not self._engine.isa.is_kernel_address(pc):
                break
            if low <= pc < high:
                following = pc
            else:
                pcs.append(pc)
                following = load(frame_pointer + calling.frame_next, word)
            if following <= frame_pointer:
                break
            frame_pointer = following
        return pcs

    def thread_address(self) -> int:
        """Return the address of the current thread, 0 before there is one."""
        return self._engine.load(self._current, self._word)

    def thread_field(self, name: str) -> int:
        """Return a word of the current thread, by the name of its offset."""
        return self.field(self.thread_address(), name)

    def field(self, address: int, name: str) -> int:
        """Return a word of a structure, by the name of its offset."""
        return self._engine.load(address + self._offset[name], self._word)

    def field32(self, address: int, name: str) -> int:
        """Return an int of a structure."""
        return self._int(address + self._offset[name])

    def field64(self, address: int, name: str) -> int:
        """Return a uint64_t of a structure."""
        return self._engine.load(address + self._offset[name], 8)

    def interrupts(self) -> int:
        """Return the number of interrupts that the current thread is serving."""
        thread = self.thread_address()
        return self.field32(thread, "TD_INTR_NESTING_LEVEL") if thread else 0

    def parent(self, pid: int) -> int | None:
        """Return the pid of a process's parent.

        None: the process has none, or there is no such process.
        """
        process = self._engine.load(self._allproc, self._word)
        while process:
            if self.field32(process, "P_PID") == pid:
                parent = self.field(process, "P_PPTR")
                return self.field32(parent, "P_PID") if parent else None
            process = self.field(process, "P_LIST")
        return None

    def open_file(self, descriptor: int) -> int:
        """Return the address of an open file of the current process, 0 if there is none."""
        offset, process = self._offset, self.thread_field("TD_PROC")
        table = self.field(process, "P_FD") if process else 0
        if not table or not 0 <= descriptor < offset["NOFILE"]:
            return 0
        return self.field(table + offset["FD_OFILES"] + descriptor * offset["FDE_SIZE"], "FDE_FILE")

    def lock_flags(self, address: int) -> int:
        """Return a lock's flags with its kind (struct lock_object, at the start of every lock)."""
        return self._engine.load(address + self._offset["LO_FLAGS"], 4)

    def user_frame(self) -> int | None:
        """Return the address of the trap frame of the current thread's entry into the kernel.

        None for a kernel thread.
        """
        load, word = self._engine.load, self._word
        thread = load(self._current, word)
        return load(thread + self._offset["TD_FRAME"], word) or None if thread else None
