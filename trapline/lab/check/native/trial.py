"""The data of trials that Python and machine code share: a CPU, a site with its states."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.native.block import Block

# The largest number of address ranges of a program and providers.
AREAS: Final = 128
# The largest number of ranges of the CPU state: as many as words that take turns in 16 KB.
RANGES: Final = 1024
# The number of written pages that are noted one by one.
NOTED: Final = 8


class Outcome(IntEnum):
    """The end of an execution."""

    STRANGE = 0
    """An unknown ending: Python must try the state."""
    DONE = 1
    """The pc is at the next instruction."""
    FAULT = 2
    """A page refused the access."""
    SIGNAL = 3
    """Python has raised a fault in the trap."""
    EXCEPTION = 4
    """The CPU has refused the instruction itself (`Target.ends`)."""


class TrialBlock(Block):
    """One CPU."""

    uc: int
    cpu: int
    env: int
    base: int
    """The address of the part of the CPU state that a state sets, in some state."""
    images: int
    """Address of a table of addresses, by the numbers of the pool's states: images of the CPU
    state, which differ from `base` only in some ranges."""
    varying: int
    """The address of the offsets and sizes of these ranges, ended by a size of 0."""
    fixed: int
    """The address of the offsets and sizes of the other ranges, ended by a size of 0."""
    vectors: int
    """The address of the offsets and sizes of the vector registers, ended by a size of 0."""
    flags: int
    """Address of the flags of the pool's states, by their numbers."""
    words: int
    """The engine's words (`emu.engine.state`)."""
    take: int
    """The engine's function that serves a hit (`Tracepoints.take`)."""
    trap: int
    """The engine's callbacks."""
    invalid: int
    memory: int
    """The eight pages in this process."""
    physical: int
    """The eight pages in the guest's RAM."""
    written: int
    """The number of pages that were written since they were last restored, and the address of their
    addresses; more than `NOTED`: they are not all known."""
    noted: int
    host_wrote: int
    """The address of a word: whether Python has written to the pages."""
    areas: int
    """The number of address ranges outside these pages, and the address of their starts and ends."""
    bounds: int
    fill: int
    """The engine's own hook for pages, as Unicorn calls it."""
    engine_hook: int
    """Unicorn's descriptions of that hook, and of the check's."""
    own_hook: int
    reach: int
    """The check's function for memory that plans access (`Word.REACH`)."""
    nothing: int
    """Address of a zero: an argument of a probe in memory that is not mapped."""
    ended: int
    """`Outcome`."""
    pc: int
    refused: int
    """The address of a page fault, or the number of another exception."""


class BatchBlock(Block):
    """States, and the sites that are tried in them."""

    site: int
    """The address of the site that is tried."""
    repeats: int
    """Whether the instructions are repeated string instructions: each is executed to its end."""
    excepted: int
    """The site at which Python has compared the latest `Outcome.EXCEPTION` of both CPUs."""
    put_back: int
    """The site at whose copy Python has served the latest page fault."""
    sites: int
    """Address of the addresses of the sites, one for each state."""
    next: int
    """The number of the next state, by its place in the list."""
    count: int
    numbers: int
    """Address of the numbers of states, of 64 bits each."""
    pristine: int
    memory_size: int
    registers: int
    """The address of the offsets and sizes of the compared registers, ended by a size of 0."""
    scratch: int
    """The number of ranges of scratch space, and the address of their starts and ends."""
    stretches: int
    traps: int
    """The number of exceptions that the engine has taken in a state."""
    faulted: int
    """u64 (): whether Python has put the thread back whose copy has faulted: 1 or 0."""
    signalled: int
    """u64 (): whether Python has raised the fault that the plain CPU has met: 1 or 0."""
