"""The rules of an architecture for fetches of code that another CPU writes, as data.

`trapline race` explores every order that these rules permit.  They say less than real CPUs do: what
a manual does not promise is not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Flag, auto
from typing import NamedTuple

from emu.support.immutable import immutable


class Effect(Flag):
    """The effects that an instruction may have on code which its CPU has written."""

    NONE = 0
    ORDER = auto()
    """Other CPUs see the stores before it before those after it."""
    COMPLETE = auto()
    """The CPU waits for its earlier stores, and for its earlier operations on caches."""
    CLEAN = auto()
    """The line with an address leaves the cache of data, where fetches do not look."""
    INVALIDATE = auto()
    """All CPUs' caches of instructions drop the line with an address."""
    SYNCHRONIZE = auto()
    """The CPU discards what it has fetched, and fetches anew."""


class Barrier(NamedTuple):
    """The effects of one instruction."""

    effect: Effect
    address: str = ""
    """The register with the address whose line is meant; "": all lines."""


class Erratum(NamedTuple):
    """A known bug of some CPUs: instructions behind a store to code may be executed twice.

    It happens if a jump to that code follows.
    """

    what: str
    source: str
    most: int
    """The largest number of instructions that are executed twice."""
    within: int
    """The largest number of instructions from the store to the jump."""


@immutable
class Fetching:
    """The promises of an architecture about code that is modified while it is executed."""

    unit: int
    """Bytes of a naturally aligned block that a fetch sees whole: all of an old value, or all of a
    new one.  1: an instruction may be seen half written."""
    block: int
    """Bytes of an aligned block within which one store, of any address and size, is seen whole; 1:
    only a naturally aligned store of at most eight bytes is."""
    ordered: bool
    """Whether other CPUs see the stores of a CPU in the order of its program."""
    broadcast: bool
    """Whether what makes a CPU's stores visible to its own fetches reaches the caches of all CPUs."""
    interrupted: bool
    """Whether a CPU that takes an interrupt and returns from it discards what it had fetched."""
    barrier: Callable[[bytes], Barrier]
    """The effects of the instruction that begins some bytes; no effect, for most instructions."""
    sources: tuple[str, ...]
    """The sections of the manuals."""
    coherent: bool = False
    """Whether a CPU that jumps to code which it has stored itself executes the new bytes, without
    any barrier."""
    errata: Mapping[str, Erratum] = field(default_factory=dict)
    """By name."""
    concurrent: Callable[[bytes], bool] | None = None
    """Whether an instruction is one of those that may be written, and overwritten, while another
    CPU executes it; None: the architecture names none, and `unit` is all that it says."""
