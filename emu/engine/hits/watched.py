"""Places in the code that machine code watches: calls of probes, and code that takes no time.

A place is hooked (`emu.engine.qemu.code_hooks`).  Its Python function defines what happens there,
and does it when machine code cannot: the first time, and whenever a block has another start.

    PAUSE    the start of code that takes no time (`VirtualClock.pause`)
    RESUME its end
    CALL     the kernel calls `dtrace_probe(id, arg0, ... arg4)`
    TIME     the kernel calls a function whose result is the time, in nanoseconds
    TURN     a place at which the turn of one of several CPUs may end
"""

from __future__ import annotations

from enum import IntEnum

from emu.native.block import Block


class WatchKind(IntEnum):
    """The action at a place; 0: only that of its Python function."""

    PAUSE = 1
    RESUME = 2
    CALL = 3
    TIME = 4
    TURN = 5


class Stretch(Block):
    """The state of the code without time that the CPU executes."""

    inside: int
    """1: the CPU is in such code."""
    owed: int
    """The number of instructions that the branch to it has skipped; they are executed when nothing
    is traced."""


class Turn(Block):
    """The turn of one of several CPUs."""

    until: int
    """The time, in nanoseconds, from which on it ends at such a place."""
    over: int
    """1: it has ended there."""


class Watched(Block):
    """A place."""

    kind: int
    python: int
    """The hook in Python: void (uc, address, size, data)."""
    block: int
    """Address of the block in which it was last executed; 0: none."""
    index: int
    """The number of instructions before it in that block."""
    owed: int
    """PAUSE: `Stretch.owed`."""
    clock: int
    """All but CALL: the words of `VirtualClock`."""
    stretch: int
    """PAUSE, RESUME: the `Stretch`."""
    calls: int
    """CALL: the `Calls`."""
    period: int
    """TIME, TURN: `VirtualClock.period`, which is not 0."""
    turn: int
    """TURN: the `Turn`."""


class Calls(Block):
    """The probes that `dtrace_probe` fires."""

    core: int
    """The words of DTrace's CPU."""
    firings: int
    """Address of the `Firing`s by probe id, 0 for those that Python fires."""
    limit: int
    """The number of ids."""
    frames: int
    """Address of a word: while a probe fires, the number of frames that its stack omits, plus one."""


class Hooked(Block):
    """The state of the current hook, shared by machine code and Python."""

    inside: int
    """1: a hook is running; writing code then leaves the block."""
    left: int
    """1: the block was left, so that the hook will be called again."""
