"""The exact count of instructions, and the words that the callbacks and the engine share.

`emu.engine.state` documents the rules by which the callbacks count.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from emu.engine.memory.memory import Memory
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.inlined_count import ENTRIES, ENTRY_SIZE, Late, low_memory
from emu.engine.state import NEVER, PREPAID, WORDS, TableEntry, Word
from emu.isa.base import Isa
from emu.support.words import WORD_MASK, BadAddressError

# As plain numbers: time is read at every firing.
_TOTAL: Final = int(Word.TOTAL)
_BLOCK: Final = int(Word.BLOCK)
# The half of a table entry's second word that is the block's count; the other half is its size.
_COUNT: Final = 0xFFFF_FFFF
_LONGEST_INSTRUCTION: Final = 15


class _Shared:
    """Data that the callbacks and the engine share: words, table, and entries of written blocks."""

    def __init__(self, blocks: int, *, inlined: bool) -> None:
        words = ctypes.c_uint64 * WORDS
        table = TableEntry * (2 * blocks)
        size = ctypes.sizeof(words) + ctypes.sizeof(table)
        low = low_memory(size + ENTRIES * ENTRY_SIZE) if inlined else None
        memory = low if low is not None else bytearray(size)
        self.words = words.from_buffer(memory)
        self.table = table.from_buffer(memory, ctypes.sizeof(words))
        end = ctypes.addressof(self.words) + size
        self.written = (end, end + ENTRIES * ENTRY_SIZE) if low is not None else (0, 0)
        """The start and the end of the entries of written blocks."""
        self.entries = memoryview(memory)[ctypes.sizeof(words) :].cast("Q")


class Counter:
    """Counts the instructions of one CPU.

    `blocks`, a power of two, is the number of blocks whose sizes are remembered.  `inlined`: their
    counts are written into the translated blocks, where the host allows it.
    """

    def __init__(self, isa: Isa, cpu: Cpu, memory: Memory, blocks: int, *, inlined: bool = False) -> None:
        self.half = blocks
        """Entries of the table for user blocks; then as many for kernel blocks."""
        shared = _Shared(blocks, inlined=inlined)
        self.table = shared.table
        self.state_array = shared.words
        self.state: memoryview[int] = memoryview(self.state_array).cast("B").cast("Q")
        """The words of `emu.engine.state.Word`."""
        self.address = ctypes.addressof(self.state_array)
        """Their address."""
        self.late = Late(self.state)
        self._written = shared.written
        self._cpu = cpu
        self._isa = isa
        self._memory = memory
        self._words = cpu.words
        self._pc = isa.registers.slots[isa.registers.pc]
        self._entries = shared.entries
        """The entries as words: of each the address, then the count and the size in one."""
        self._entries_at = ctypes.addressof(self.table)
        self._last = 0
        """Address of the table entry of the block that was settled last; 0: none."""
        self._stale = False
        self.on_forget: Callable[[], object] = lambda: None
        """Called whenever sizes of blocks are forgotten, or their entries may be used again."""
        self.at_block: Callable[[int], object] = lambda _entry: None
        """Called by callbacks in Python at each block that begins, while the word AT_BLOCK is set."""
        self._indices: dict[tuple[int, int], int] = {}
        self._user_indices: dict[tuple[int, int], int] = {}
        state = self.state
        state[Word.TOTAL] = PREPAID
        state[Word.SOFT] = state[Word.HARD] = state[Word.NEXT] = state[Word.STOP_AT] = NEVER
        state[Word.CPU] = cpu.address
        state[Word.ENV] = cpu.env
        state[Word.UC] = cpu.handle
        state[Word.FREE], state[Word.FREE_END] = shared.written

    @property
    def instructions(self) -> int:
        """The exact number of instructions executed so far.

        The instruction at pc is not included.
        """
        entry = self.state[_BLOCK]
        if not entry:
            return self.state[_TOTAL] - PREPAID
        slot = entry - self._entries_at >> 3
        address, numbers, pc = self._entries[slot], self._entries[slot + 1], self._words[self._pc]
        # Unicorn's own count is wrong by one if an illegal instruction follows RISC-V's wfi: so the end is decoded too.
        if not 0 <= pc - address <= numbers >> 32:
            return int(self.state[_TOTAL]) - PREPAID
        try:
            index = self._index(address, pc)
        except BadAddressError:  # the block has unmapped its own code
            return int(self.state[_TOTAL]) - PREPAID
        return int(self.state[_TOTAL] - PREPAID - (numbers & _COUNT) + index)

    @property
    def before_block(self) -> int:
        """Instructions executed before the current block, which are known without decoding code."""
        entry = self.state[_BLOCK]
        total = self.state[_TOTAL] - PREPAID
        return int(total - (self._entries[(entry - self._entries_at >> 3) + 1] & _COUNT) if entry else total)

    def discount(self, instructions: int, executed: int = 0) -> None:
        """Subtract instructions from the count.

        They correspond to one that has been counted, or that must not be counted when it runs.
        `executed` of them the CPU executes, beside the program's.
        """
        self.state[_TOTAL] -= instructions
        self.state[Word.DISCOUNTED] = self.state[Word.DISCOUNTED] + executed & WORD_MASK

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Tell nobody of the blocks of the runs meanwhile."""
        told = self.state[Word.AT_BLOCK]
        self.state[Word.AT_BLOCK] = 0
        try:
            yield
        finally:
            self.state[Word.AT_BLOCK] = told

    @property
    def all_executed(self) -> int:
        """Instructions that the CPU executed before the current block, not only the program's."""
        return self.before_block + self.state[Word.DISCOUNTED] & WORD_MASK

    def settle(self) -> None:
        """Subtract the instructions of the current block that were not executed.

        It was left at pc.
        """
        self.state[_TOTAL] = self.instructions + PREPAID
        self._last = self.state[_BLOCK]
        self.state[_BLOCK] = 0

    def stopped_at(self, instructions: int) -> None:
        """Note how many instructions were executed, and that no block is under way."""
        self.state[_TOTAL] = instructions + PREPAID
        self.state[_BLOCK] = 0

    def settle_behind(self) -> None:
        """Subtract those instructions of the current block that follow the instruction at pc."""
        self.settle()
        self.state[_TOTAL] += 1

    def ended_with(self, address: int, end: int) -> bool:
        """Return whether the block that ran last ended with the instruction in [address, end)."""
        entry = self._last
        if not entry:
            return False
        slot = entry - self._entries_at >> 3
        block, size = self._entries[slot], self._entries[slot + 1] >> 32
        if block + size != end or address < block:
            return False
        # Decoding from the start of the block finds the beginning of the instruction.
        return self._index(block, address) + 1 == self._index(block, end)

    # -- blocks whose code or meaning has changed

    def forget_user_blocks(self) -> None:
        """Forget the sizes of user blocks: the address space is about to change."""
        self.on_forget()
        ctypes.memset(self.table, 0, self.half * ctypes.sizeof(TableEntry))
        if self._user_indices:
            self._user_indices.clear()

    def forget_user_blocks_at(self, addresses: range) -> None:
        """Forget the sizes of the user blocks that begin at some addresses."""
        self.on_forget()
        table, mask = self.table, self.half - 1
        for address in addresses:
            entry = table[(address >> 1 ^ address >> 17) & mask]
            if entry.address == address:
                entry.address = 0
        self._user_indices.clear()

    def code_written(self) -> None:
        """Forget the sizes of all blocks, but not yet.

        The table is emptied before it is used again.
        """
        self.on_forget()
        self._stale = True
        self._indices.clear()
        self._user_indices.clear()

    def user_code_written(self) -> None:
        """Forget the sizes of all blocks before the next run: code of some process was written."""
        self.on_forget()
        self._stale = True

    def refresh(self) -> None:
        """Empty the table if code was written since the last run.

        Translate all blocks anew if the entries for their counts are used up.
        """
        if not self.state[Word.FREE] and self.state[Word.OVERDUE]:
            self.translate_anew()
        if self._stale:
            ctypes.memset(self.table, 0, ctypes.sizeof(self.table))
            self._indices.clear()
            self._user_indices.clear()
            self._stale = False

    def translate_anew(self) -> None:
        """Let Unicorn translate all blocks again, between two runs: hooks were added or removed."""
        self.on_forget()
        self._cpu.forget_blocks()
        self.state[Word.FREE] = self._written[0]
        self._last = 0

    def _index(self, block: int, pc: int) -> int:
        """Return the number of instructions between the start of a block and pc."""
        if self._isa.instruction_alignment == 4:
            return (pc - block) >> 2
        key = (block, pc)
        indices = self._indices if block >= self._isa.kernel_start else self._user_indices
        index = indices.get(key)
        if index is None:
            code = self._memory.read(block, pc - block)
            index = offset = 0
            while offset < len(code):
                offset += self._isa.instruction_length(code[offset : offset + _LONGEST_INSTRUCTION]) or 1
                index += 1
            indices[key] = index
        return index
