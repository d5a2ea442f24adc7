"""Places in the code that machine code watches: where a kernel calls probes, and where time stands.

A place is hooked (`emu.engine.code_hooks`).  Its Python function says what happens there, and does
it where machine code cannot: the first time, and whenever a block begins elsewhere.

    PAUSE    a stretch begins that takes no time (`VirtualClock.pause`)
    RESUME   it ends
    CALL     the kernel calls `dtrace_probe(id, arg0, ... arg4)`
"""

from __future__ import annotations

from enum import IntEnum

from emu.native.block import Block


class WatchKind(IntEnum):
    """The action at a place; 0: only that of its Python function."""

    PAUSE = 1
    RESUME = 2
    CALL = 3


class Stretch(Block):
    """The stretch without time that the CPU is in."""

    inside: int
    """1: it is in one."""
    owed: int
    """How many instructions at rest the branch to it left out."""


class Watched(Block):
    """A place."""

    kind: int
    python: int
    """The hook in Python: void (uc, address, size, data)."""
    block: int
    """Address of the block in which it was met last; 0: none."""
    index: int
    """How many instructions of that block come before it."""
    owed: int
    """PAUSE: `Stretch.owed`."""
    clock: int
    """PAUSE, RESUME: the words of `VirtualClock`."""
    stretch: int
    """PAUSE, RESUME: the `Stretch`."""
    calls: int
    """CALL: the `Calls`."""


class Calls(Block):
    """The probes that `dtrace_probe` fires."""

    core: int
    """The words of DTrace's CPU."""
    firings: int
    """Address of the `Firing`s by probe id, 0 for those that are Python's."""
    limit: int
    """How many ids there are."""
    frames: int
    """Address of a word: while a probe fires, how many frames its stack leaves out, and one."""


class Hooked(Block):
    """The state of the current hook, shared by machine code and Python."""

    inside: int
    """1: one is; code that is written then leaves the block."""
    left: int
    """1: the block was left, so that the hook is met once more."""
