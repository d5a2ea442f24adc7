"""The words shared by the engine and its callbacks, and the table of block sizes.

The callbacks run inside Unicorn, at every translated block and every trap: compiled (`emu.engine.native`) or, where
there is no llvmlite, in Python (`emu.engine.interpreted`).  Both read and write the words below and follow the same
rules, so a run is the same with either, to the instruction.

Counting.  Unicorn calls a hook at the start of each block.  The number of instructions in it is asked of Unicorn once
per block and remembered.  `TOTAL` thus runs ahead inside a block; whoever stops or faults in mid-block takes back
what was not executed (`Engine.executed`).

Deadlines.  `HARD` stops the run at the first block whose start is at or past that count; `SOFT` at the first such block
in user mode (lower half of the addresses).  A stop lands before the block runs, and the block is not counted.

Stale sizes.  Kernel addresses mean the same code in every address space; user addresses do not.  So entries carry a
tag: 0 for kernel blocks, the address-space generation for user blocks, which grows whenever the root register changes.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final


class Word(IntEnum):
    """Index of each word."""

    TOTAL = 0
    SOFT = 1
    HARD = 2
    BLOCK = 3
    """Address of the block under way."""
    BLOCK_COUNT = 4
    """Its instructions; 0 when it was stopped before it ran."""
    BLOCK_SIZE = 5
    """Its bytes."""
    ROOT = 6
    GENERATION = 7
    TABLE = 8
    ROOT_POINTER = 9
    CPU = 10
    ENV = 11
    UC = 12
    STOPPED = 13
    """1 when a deadline stopped the run."""


WORDS: Final = 16
NEVER: Final = (1 << 63) - 1
TABLE_ENTRIES: Final = 1 << 16


class TableEntry(ctypes.Structure):
    """A block's instruction count."""

    _fields_ = (("address", ctypes.c_uint64), ("tag", ctypes.c_uint32), ("count", ctypes.c_uint32))


class TranslationBlock(ctypes.Structure):
    """Unicorn's uc_tb."""

    _fields_ = (("pc", ctypes.c_uint64), ("icount", ctypes.c_uint16), ("size", ctypes.c_uint16))


TB_REQUEST_CACHE: Final = 8 | 2 << 26 | 3 << 30
"""uc_ctl request: UC_CTL_TB_REQUEST_CACHE, two arguments, read and write."""

DELIVER: Final = 1
HANDLED: Final = 0
"""What a Python trap callback answers: let the guest have the exception, or it is done."""
