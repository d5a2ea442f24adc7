"""The layouts that Python and machine code share: the words of each block, by their index.

A block is an `array` of 64-bit words (`emu.support.plain`).  Addresses in it are the host's, unless
it says otherwise.
"""

from __future__ import annotations

from enum import IntEnum


class BufferWord(IntEnum):
    """A buffer for records (`trapline.framework.buffers.buffers`)."""

    DATA = 0
    """Address of the half that is being written."""
    OFFSET = 1
    """End of the records that count."""
    LIMIT = 2
    """A record that ends at or below it needs no `reserve`, but for the alignment of `OFFSET`."""
    SIZE = 3
    DROPS = 4
    ERRORS = 5
    INACTIVE = 6
    """1 until tracing begins on this CPU."""
    SCRATCH = 7
    """Scratch space, as an address of DIF."""
    FOLLOWS = 8
    """1: scratch space starts where the reservation ends; 0: at `SCRATCH`."""
    WRAPPED = 9
    """1: a ring's new records take the place of old ones."""
    OLDEST = 10
    """Offset of the oldest record then."""


class SpeculationWord(IntEnum):
    """One of the speculations of a consumer (`trapline.framework.buffers.speculation`)."""

    STATE = 0
    BUFFER = 1
    """Address of the words of the first CPU's buffer."""


class AggregationWord(IntEnum):
    """An aggregation buffer (`trapline.framework.buffers.aggbuffer`)."""

    DATA = 0
    SIZE = 1
    ROOM = 2
    """Start of the key headers while there are none; all ones: nothing fits."""
    FREE = 3
    """Start of the last key header."""
    OFFSET = 4
    """End of the entries."""
    DROPS = 5
    BUCKETS = 6
    """Number of hash chains."""
    TABLE = 7
    """Address of their heads."""
    EPOCH = 8
    """The number of times that the entries were cleared, from 1 on: addresses of values are valid
    in one epoch."""


class DynamicWord(IntEnum):
    """The dynamic variables of a consumer (`trapline.framework.base.dynvars`)."""

    DATA = 0
    """Address of the space: heads of the hash chains, then chunks."""
    BASE = 1
    """The address of the space in DIF."""
    CHUNK = 2
    """Size of a chunk."""
    CHAINS = 3
    """Number of hash chains, `CHAIN` bytes each."""
    STATE = 4
    """The reason why the last allocation failed: a number of `dynvars.State`."""
    CPUS = 5
    POOLS = 6
    """Address of the pools, by CPU."""
    KEY = 7
    """Address of room for a key, as long as a chunk."""


class PoolWord(IntEnum):
    """The chunks of one CPU, by their offsets in the space; 0: there is none."""

    FRESH = 0
    """The first chunk that was never used; the others follow it."""
    LEFT = 1
    """The number of those chunks."""
    FREE = 2
    DIRTY = 3
    LAST = 4
    """The chunk that has been dirty for the longest time: the end of that list."""
    CLEAN = 5
    DROPS = 6
    DIRTY_DROPS = 7


class ConsumerWord(IntEnum):
    """One consumer (`trapline.framework.device.state`)."""

    ACTIVE = 0
    """1 while its enablings run."""
    NEXT_CLEAN = 1
    """The time of the cleaner's next run, in nanoseconds of the guest's clock."""
    REGIONS = 2
    """Address of the table of regions."""
    GLOBALS = 3
    """Address of the global variables' words."""
    LOCALS = 4
    """Address of an array by CPU: the address of its clause-locals' words."""
    BUFFERS = 5
    """Address of an array by CPU: the address of its buffer's block."""
    AGGREGATIONS = 6
    """Address of an array by CPU: the address of its aggregation buffer's block."""
    DYNAMIC = 7
    """Address of the block of the dynamic variables."""


class EcbWord(IntEnum):
    """The words of an enabling that machine code reads."""

    EPID = 0
    PROBE = 1
    PROVIDER = 2
    """Addresses of the probe's names, for DIF."""
    MODULE = 3
    FUNCTION = 4
    NAME = 5
    ANCHORED = 6
    """1 if the probe is in a function."""
    LATE = 7
    """Address of the function that finds arguments 5 to 9 (`emu.native.guest.LateArguments`)."""
    AGGREGATIONS = 8
    """The ids of its aggregating actions, from here on.

    They are followed by two words for each: the `AggregationWord.EPOCH` in which its value was
    found last, and the value's address, if its key is always the same.
    """
