"""Code in memory: writing it, and making Unicorn forget its translation."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from emu.engine.hits.watched import Hooked, Watched
from emu.engine.memory.access import Access
from emu.engine.memory.memory import Memory
from emu.engine.qemu.code_hooks import CodeHooks
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.ud_hooks import Refusals
from emu.engine.state import PREPAID, TableEntry, Word
from emu.engine.time.counter import Counter
from emu.support.plain import function_address
from emu.support.words import BadAddressError

# The alignment of instructions that have two sizes.
_HALF: Final = 2
_CODE_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class Code:
    """The code that one CPU runs; `fail` is called with the exception of a callback."""

    def __init__(
        self, cpu: Cpu, memory: Memory, counter: Counter, hooks: CodeHooks, fail: Callable[[BaseException], None]
    ) -> None:
        self.running = False
        """Whether the CPU runs: then the sizes of blocks are in use."""
        self.refusals: Refusals | None = None
        """The instructions that the CPU refuses and Unicorn would execute; None: there are none."""
        self._cpu = cpu
        self._memory = memory
        self._counter = counter
        self._hooks = hooks
        self.fail = fail
        self.hooked = Hooked()
        """The state of the current hook."""
        self.watcher = 0
        """Address of the hook in machine code; 0: there is none."""
        self._watched: list[Watched] = []
        self._kept: list[Any] = []

    def write(self, address: int, data: bytes) -> None:
        """Write instructions at a mapped virtual address, and drop Unicorn's old translation.

        Only `emu.probe.patcher.Patcher` and loaders call this.  Raises `BadAddressError` if the
        address is not mapped.
        """
        places = self._memory.places(address, len(data), Access.WRITE)
        self._memory.write(address, data)
        self.refuse_in(address, len(data))
        # By physical address: Unicorn translates a virtual one as the CPU would in its current mode, and between two
        # runs that may be user mode, where a kernel address causes a page fault that is not handled, and nothing is
        # forgotten.
        for start, end in places:
            self._forget_translation(start, end)
        self._counter.code_written()
        for watched in self._watched:
            watched.block = 0
        if self.hooked.inside:
            self._cpu.leave_block()
            self.hooked.left = 1

    def refuse_in(self, address: int, size: int) -> None:
        """Check code that was written, and make Unicorn refuse what the CPU refuses."""
        if self.refusals is not None:
            self.refusals.written(self._memory, address, size)

    def changed(self) -> None:
        """Forget the sizes of the user's blocks, because code of a process was written."""
        if self.running:
            self._counter.forget_user_blocks()
        else:
            self._counter.user_code_written()

    def serve(self, address: int) -> None:
        """Serve the breakpoint at an address without an exception from now on, if there is one.

        It has been hit before, and machine code can serve its next hits.
        """
        try:
            code = self._memory.read(address, self._breakpoint_size(address))
        except BadAddressError:  # the number of another exception is not an address
            return
        if self._hooks.serve(address, code):
            for start, end in self._memory.places(address, len(code)):
                self._forget_translation(start, end)

    def _breakpoint_size(self, address: int) -> int:
        """Return the length of the breakpoint at an address; on x86 it is one byte."""
        alignment = self._cpu.isa.instruction_alignment
        return alignment if alignment != _HALF else self._cpu.isa.instruction_length(self._memory.read(address, _HALF))

    def forget(self, physical: int, size: int) -> None:
        """Drop Unicorn's translation of physical memory whose content the guest replaced.

        Unicorn notices stores through an executable mapping. But a kernel fills a page of text
        through its linear map, which is not executable, and the text of the page's previous owner
        would still run.
        """
        self._forget_translation(physical, physical + size)
        self.changed()

    def store(self, address: int, data: bytes, root: int | None = None) -> None:
        """Write memory of a program, which may be code, and drop what was translated from it.

        Raises `BadAddressError`; then nothing is written.
        """
        places = self._memory.places(address, len(data), Access.WRITE, root)
        self._memory.write(address, data, root)
        for start, end in places:
            self.forget(start, end - start)

    def forget_instruction(self, physical: int, address: int, size: int) -> None:
        """Do the same for a few instructions of a program, which are at a virtual address.

        No other block has code of theirs.
        """
        self._forget_translation(physical, physical + size)
        if not self.running:
            self._counter.user_code_written()
        step = self._cpu.isa.instruction_alignment
        self._counter.forget_user_blocks_at(range(address, address + size, step))

    def _forget_translation(self, start: int, end: int) -> None:
        self._cpu.forget_code(start, end)

    def on_code(self, address: int, callback: Callable[[], None], watched: Watched | None = None) -> None:
        """Call `callback` before the instruction at `address` runs.

        Set it before that code is translated. Machine code does what `watched` says if it can; the
        callback does the same.
        """

        def hook(_uc: int, _address: int, _size: int, _words: int) -> None:
            if self.hooked.left:  # the callback wrote code, so the block was left, and the hook will be called again
                self.hooked.left = 0
                return
            self.hooked.inside = 1
            try:
                if watched is not None:
                    self._describe(watched, address)
                callback()
            except BaseException as error:  # noqa: BLE001  raised again by Running
                self.fail(error)
            finally:
                self.hooked.inside = 0
            if self.hooked.left:
                self._counter.settle()

        pointer = _CODE_HOOK(hook)
        if watched is None or not self.watcher:
            self._hooks.add(address, pointer, 0)
            return
        watched.python = function_address(pointer)
        self._watched.append(watched)
        self._kept.append(pointer)
        self._hooks.add(address, ctypes.c_void_p(self.watcher), watched.address)

    def _describe(self, watched: Watched, address: int) -> None:
        """Store the number of instructions that precede an address in the current block."""
        block = self._counter.state[Word.BLOCK]
        if not block:
            return
        entry = TableEntry.from_address(block)
        if 0 <= address - entry.address < entry.size:
            watched.block = entry.address
            watched.index = self._counter.instructions - (self._counter.state[Word.TOTAL] - PREPAID - entry.count)
