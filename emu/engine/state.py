"""The words shared by the engine and its callbacks, and the table of block sizes.

The callbacks run inside Unicorn, at every translated block and every trap: compiled
(`emu.engine.native`) or, where there is no llvmlite, in Python (`emu.engine.interpreted`).  Both
read and write the words below and follow the same rules, so a run is the same with either, to the
instruction.

Counting.  Unicorn calls a hook at the start of each block.  The number of instructions in it is
asked of Unicorn once per block; it is written into the translated block (`emu.engine.inlined`) or
remembered in a table.  `TOTAL` thus runs ahead inside a block: after a stop or a fault in
mid-block, what was not executed is taken back (`Engine.instructions`).

Deadlines.  `HARD` stops the run at the first block whose start is at or past that count; `SOFT` at
the first such block in user mode (lower half of the addresses).  A stop lands before the block
runs, and the block is not counted.  `NEXT` is the earlier of the two: before it neither needs a
look.  Whatever ends a run in another way makes it 0.

Stale sizes.  Kernel addresses mean the same code in every address space; user addresses do not.  So
the table has a half for each, and the user half is emptied when the address space changes
(`Engine.forget_user_blocks`).
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final


class Word(IntEnum):
    """Index of each word."""

    TOTAL = 0
    NEXT = 1
    SOFT = 2
    HARD = 3
    BLOCK = 4
    """Address of the table entry of the current block; 0 if nothing of a block must be
    subtracted."""
    CPU = 5
    ENV = 6
    UC = 7
    STOPPED = 8
    """1 when a deadline stopped the run."""
    GENERATION = 9
    """Which address space, and which version of it, in the bits above a page number
    (`emu.engine.tlb`)."""
    FILLED = 10
    """Fills of Unicorn's TLB since it was last emptied."""
    FILLED_MAX = 11
    """The number of fills at which it is emptied, to make it grow."""
    SPACE = 12
    """Which address space, where the host keeps them: a number of its own for each."""
    FREE = 13
    """Address of the next entry for a block whose count is written into it (`emu.engine.inlined`);
    0: none is written."""
    FREE_END = 14
    """Where the entries end."""
    OVERDUE = 15
    """Address that written blocks jump to when a deadline may be due; 0: not there yet."""
    THREAD = 16
    """Which thread runs, where the host keeps them: a number of its own for each."""
    UNCLAIMED = 17
    """1: the breakpoint whose exception comes next is claimed by no one, and was asked about."""
    REACH = 18
    """Address of a function of the engine's user that says where memory is, where the host keeps
    the address space: u64 (REACH_FOR, address, access), 0 for out of reach; 0: there is none."""
    REACH_FOR = 19
    SERVED = 20
    """How many hits machine code has served since 0 was put there."""


WORDS: Final = 24
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
# What a Python trap callback answers: let the guest have the exception, or it is done.
HANDLED: Final = 0
