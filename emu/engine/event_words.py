"""The words of the hook of `emu.engine.event_counts`, and the places of its sums."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.native.block import WORD_SIZE, Block


class Counted(IntEnum):
    """What is counted: the place in a row of sums."""

    INSTRUCTIONS = 0
    LOADS = 1
    STORES = 2
    ACCESSES = 3
    """Instructions that load, store, or both."""
    BRANCHES = 4


class Mode(IntEnum):
    """The modes of the CPU: the number of a row of sums."""

    USER = 0
    KERNEL = 1


# Bytes of a row: a word for each of `Counted`.
ROW: Final = WORD_SIZE * len(Counted)
# Entries of the table of blocks.
BLOCKS: Final = 1 << 13
# Bytes of an entry: the block's address, the address of its rows, its instructions.
ENTRY: Final = 3 * WORD_SIZE


class EventWords(Block):
    """The block that runs."""

    before: int
    """The number of instructions before it."""
    rows: int
    """The address of its rows: what its first instructions do, for none, one, two, and so on."""
    count: int
    """Its instructions."""
    sums: int
    """The address of the sums of its mode."""
    check_at: int
    """The number of instructions before a block at which Python looks at the sums."""
