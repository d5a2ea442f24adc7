"""The table of tracepoints as machine code reads it: entries, steps, firings.

A tracepoint is a list of steps, done one after the other:

    FIRE        a probe's enablings run, with arguments read from registers, numbers, and memory
    RUN         an encoded plan is executed (`emu.engine.hits.plan_encoding`)
    FIRE_AFTER  the same as FIRE, if the pc has left a function
    CALL        a provider's own machine code runs
    FIRE_WHEN   the same as FIRE, if a register has a value
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.engine.hits.address_table import Addressed, TableHeader
from emu.native.block import Block
from emu.support.words import WORD_MASK

# `Entry.space` and `Entry.thread` of a tracepoint in all address spaces, or for all threads.
EVERY: Final = WORD_MASK


class StepKind(IntEnum):
    """The kind of a step; 0 ends a tracepoint."""

    RUN = 1
    FIRE = 2
    FIRE_AFTER = 3
    CALL = 4
    FIRE_WHEN = 5


class Header(TableHeader):
    """The table, and more data for machine code."""

    space: int
    """The address of the word with the number of the current address space."""
    thread: int
    """The address of the word with the number of the current thread."""
    version: int
    """A number, never 0, that changes whenever the table does."""
    depth: int
    """The number of hits that are being served: Python code of one hit may cause the next."""


class Entry(Addressed):
    """A tracepoint."""

    space: int
    """The number of its address space, or `EVERY`."""
    thread: int
    """The number of the thread that it applies to, or `EVERY`."""
    steps: int
    """Address of its steps: of `Step`s."""
    core: int
    """The words of DTrace's CPU (`emu.displaced.cpu_core`)."""


class Step(Block):
    """One step of a tracepoint."""

    kind: int
    what: int
    """The address of a plan, or of a `Firing`; CALL: the argument."""
    function: int
    """FIRE_AFTER: the start of the function that must be left; FIRE_WHEN: the value; CALL: the
    function."""
    size: int
    """FIRE_AFTER: its size.  FIRE_WHEN: 1."""
    pc: int
    """FIRE_AFTER: the address of the word with the target of the instruction. FIRE_WHEN: that of
    the register."""


class Firing(Block):
    """A probe that fires: what runs, and where its arguments are."""

    runs: int
    """Address of two words: the number of enablings, 0 if Python must run them, and their address.
    Each enabling is a pair of a function and its first argument."""
    simple: int
    """Whether all arguments are words of this process as they are."""
    place0: int
    """The address in this process of the first argument, or of the base of its address."""
    place1: int
    place2: int
    place3: int
    place4: int
    offset0: int
    """The distance from the base."""
    offset1: int
    offset2: int
    offset3: int
    offset4: int
    size0: int
    """The size in bytes of the first argument in the guest's memory; 0: it is not there."""
    size1: int
    size2: int
    size3: int
    size4: int
    unused0: int
    """The number of its upper bits that are ignored."""
    unused1: int
    unused2: int
    unused3: int
    unused4: int
    signed0: int
    """Whether its sign is extended over these bits."""
    signed1: int
    signed2: int
    signed3: int
    signed4: int
    framed: int
    """`CpuCore.framed`."""
    pushed: int
    """`CpuCore.pushed`."""
    flags: int
    """Bits of `CpuFlag` that are set while it fires."""
    trap: int
    """Whether it belongs to a hit: then `CpuCore.prepare` provides the context of the trap."""
    frames: int
    """For a probe that a kernel calls: the number of frames that its stack omits, plus one."""
    late: int
    """Address of a `Firing` whose arguments are 5 to 9 of this one; 0: they are not known here."""
