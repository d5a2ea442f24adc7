"""The words shared by the engine and its callbacks, and the table of block sizes.

The callbacks run inside Unicorn, at every translated block and every trap: compiled
(`emu.engine.native_callbacks`) or, without llvmlite, in Python (`emu.engine.python_callbacks`).
Both read and write the words below and follow the same rules, so a run is the same with either, to
the instruction.

Counting.  Unicorn calls a hook at the start of each block.  Unicorn is asked once per block for the
number of instructions in it; the number is written into the translated block
(`emu.engine.qemu.inlined_count`) or stored in a table. `TOTAL` is therefore too high inside a
block: after a stop or a fault inside a block, the instructions that were not executed are
subtracted (`Engine.instructions`).

Deadlines.  `HARD` stops the run at the first block whose start is at or past that count; `SOFT` at
the first such block in user mode (lower half of the addresses).  A run stops before the block is
executed, and the block is not counted. `NEXT` is the earlier of the two: before it neither needs a
test. Code that ends a run in another way sets it to 0.

A deadline may be a time of a clock from which a probe's own instructions are hidden. Then it is a
later count than it was when the run began, by the instructions that were hidden since. That is
looked at when it is reached: `CLOCK` is that clock, and `HIDDEN` and `SKIPPED` are the state of it
for which the deadlines hold. So such a run ends once, and not again and again before its time.
If time was skipped, the run ends, and its user decides.

Stale sizes.  Kernel addresses mean the same code in every address space; user addresses do not.  So
the table has a half for each, and the user half is emptied when the address space changes
(`Engine.counter.forget_user_blocks`).
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final, NamedTuple


class Word(IntEnum):
    """Index of each word."""

    TOTAL = 0
    NEXT = 1
    SOFT = 2
    HARD = 3
    BLOCK = 4
    """Address of the table entry of the current block; 0 if no part of a block must be subtracted."""
    CPU = 5
    ENV = 6
    UC = 7
    STOPPED = 8
    """1 when a deadline stopped the run."""
    GENERATION = 9
    """The address space, and its version, in the bits above a page number
    (`emu.engine.qemu.tlb`)."""
    FILLED = 10
    """Number of fills of Unicorn's TLB since it was last emptied."""
    FILLED_MAX = 11
    """The number of fills at which it is emptied, to make it grow."""
    SPACE = 12
    """The number of the current address space, if the host keeps the address spaces."""
    FREE = 13
    """Address of the next entry for a block with an inlined count
(`emu.engine.qemu.inlined_count`);
    0: counts are not written."""
    FREE_END = 14
    """The end of the entries."""
    OVERDUE = 15
    """Address that changed blocks jump to when a deadline may be due; 0: not placed yet."""
    THREAD = 16
    """The number of the current thread, if the host keeps the threads."""
    UNCLAIMED = 17
    """1: no handler claims the breakpoint whose exception comes next; they were asked already."""
    REACH = 18
    """Address of a function of the engine's user that finds memory, if the host keeps the address
    space: u64 (REACH_FOR, address, access), 0 for out of reach; 0: there is no function.  The
    access is one of `emu.engine.hits.plan_code`."""
    REACH_FOR = 19
    SERVED = 20
    """Number of hits that machine code has served since this word was set to 0."""

    FILLS = 21
    """Address of the table of answers of the current address space (`emu.engine.qemu.tlb`)."""
    DELIVERED = 22
    """Breakpoints below this address are delivered to the guest's kernel, and nobody is asked."""

    JUMPS = 23
    """Address of the table of `emu.engine.qemu.jump_cache`, which these words are about; 0: none."""
    JUMPS_KEY = 24
    """The state of the CPU for which it holds."""
    INVALIDATIONS = 25
    """Address of QEMU's count of dropped blocks."""
    INVALIDATED = 26
    """The count for which it holds; `emu.engine.qemu.jump_cache.FORGOTTEN`: for none."""
    LOWEST = 27
    """An address in the block that was translated first; below it are none."""
    LATEST = 28
    """An address in the block that was entered last for the first time."""

    CLOCK = 29
    """Address of the clock's words (`emu.engine.state`), whose times the deadlines are;
    0: they are counts of instructions."""
    HIDDEN = 30
    """Its hidden instructions when the deadlines were last computed, and those executed until then
    since it was stopped."""
    SKIPPED = 31
    """Its skipped nanoseconds when the run began."""

    AT_BLOCK = 32
    """Address of a function that is called at each block that begins: void (address of its entry);
    0: there is none.  NEXT is 0 meanwhile, so that no block begins without the call."""
    DISCOUNTED = 33
    """What was subtracted from TOTAL for instructions that the CPU executes."""

    REFUSED = 34
    """1: REACH has refused an access, and takes care of the fault; the hit ends there."""

    STOP_AT = 35
    """An address where the run ends, in code that is translated meanwhile; NEVER: there is none."""


WORDS: Final = 36
# The initial count: instructions may be subtracted from it before the first has run.
PREPAID: Final = 64
# Entries of the table, a power of two: 64 MiB of pages.
FILLS: Final = 1 << 14
NEVER: Final = (1 << 63) - 1
# Entries of the table for user blocks; then as many for kernel blocks.
BLOCKS: Final = 1 << 15


class TableEntry(ctypes.Structure):
    """A block: its address, its instructions, its bytes."""

    _fields_ = (("address", ctypes.c_uint64), ("count", ctypes.c_uint32), ("size", ctypes.c_uint32))


class TranslationBlock(ctypes.Structure):
    """Unicorn's uc_tb."""

    _fields_ = (("pc", ctypes.c_uint64), ("icount", ctypes.c_uint16), ("size", ctypes.c_uint16))


# uc_ctl request: UC_CTL_TB_REQUEST_CACHE, two arguments, read and write.
TB_REQUEST_CACHE: Final = 8 | 2 << 26 | 3 << 30

DELIVER: Final = 1
# The answers of a Python trap callback: deliver the exception to the guest, or it is handled.
HANDLED: Final = 0


class ClockWord(IntEnum):
    """The words of a clock, which machine code reads (`emu.engine.native_clock`)."""

    HIDDEN = 0
    """Number of instructions that take no time."""
    SKIPPED = 1
    """Nanoseconds in which no instruction ran."""
    STANDS = 2
    """1 while the clock is stopped."""
    PAUSED = 3
    """The count of instructions at which it was stopped."""


class ClockState(NamedTuple):
    """The state of a clock for which the deadlines of a run were computed."""

    address: int
    """The address of its words; 0: the deadlines belong to no clock."""
    hidden: int
    """As an unsigned word: it is negative while an instruction counts that was not executed."""
    skipped: int


NO_CLOCK: Final = ClockState(0, 0, 0)
