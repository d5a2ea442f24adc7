"""The words of the hook of `emu.engine.events.event_counts`, and the places of its sums."""

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
# Places of the table of blocks, a power of two.
BLOCKS: Final = 1 << 14


class KnownBlock(Block):
    """A place of the table: what is known of the block that the engine describes in an entry.

    The same entry can describe another block later, so the block's own address is compared, too.
    """

    entry: int
    """The address of the engine's entry (`emu.engine.state.TableEntry`); 0: the place is free."""
    address: int
    rows: int
    """The address of its rows."""
    count: int
    """Its instructions."""


class EventWords(Block):
    """The block that runs."""

    all_executed: int
    """`Counter.all_executed` before it."""
    before: int
    """The number of instructions before it, as the clock counts."""
    rows: int
    """The address of its rows: what its first instructions do, for none, one, two, and so on."""
    count: int
    """Its instructions."""
    sums: int
    """The address of the sums of its mode."""
    check_at: int
    """The number of instructions before a block at which Python looks at the sums."""
