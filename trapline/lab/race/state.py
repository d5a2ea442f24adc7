"""The state of the model: small tuples, whose hashes find the known ones."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from trapline.lab.race.memory import History


class Mode(IntEnum):
    """The activity of a CPU."""

    RUNS = 0
    TRAPPED = 1
    """The CPU has taken the breakpoint; its handler has not begun, and interrupts are disabled."""
    STOPPED = 2
    DONE = 3
    FORKS = 4
    """Its thread's memory is copied, and the tracer does not know of it yet."""
    LEAVES = 5
    """The function has returned to the trampoline, whose breakpoint was taken."""
    PATCHES = 6
    """The patching CPU, which does not execute the code now."""


class Cpu(NamedTuple):
    """One CPU that executes the code."""

    mode: Mode
    pc: int
    state: int
    """The number of its registers and memory (`Processor`)."""
    passes: int
    """The number of times that the CPU will still enter the code."""
    paths: int
    """The images (OLD, NEW, as bits) that agree with all the patched bytes that it has executed."""
    floor: int
    """The oldest content of the history that it may still fetch."""
    steps: int
    """The number of instructions in this pass."""
    forked: bool = False
    """Whether it executes the child of a fork."""
    hijacked: bool = False
    """Whether the function will return to the trampoline of a return probe."""
    patches: bool = False
    """Whether it is the patching CPU, which executes the code itself."""
    repeats: bool = False
    """Whether an erratum may make it execute again what follows its store to the code."""


OLD, NEW = 1, 2


class World(NamedTuple):
    """The state of the whole model."""

    at: int
    """The next operation of the script."""
    pending: tuple[tuple[int, bytes], ...]
    """Stores that other CPUs do not see yet: address, bytes."""
    heard: int
    """A bit for each CPU that has acknowledged the present operation."""
    history: History
    clean: int
    """The oldest content that the caches of instructions may still hold."""
    linked: int
    """A bit for each probe whose record the handler finds."""
    on: int
    """A bit for each probe whose enabling has returned, and whose disabling has not begun."""
    may: int
    """A bit for each probe that may fire: its disabling has not returned."""
    known: bool
    """Whether the breakpoint has a record."""
    diverts: bool
    """Whether a temporary breakpoint has a handler."""
    cpus: tuple[Cpu, ...]
    data: int = 0
    """The number of the patcher's data that other CPUs see."""
    child: History = ()
    """The contents of the page of a fork's child."""
    listed: bool = False
    """Whether the patcher has found the child when it listed the processes."""
    excluded: bool = False
    """Whether no process may fork now."""
    freed: bool = False
    """Whether the trampoline of return probes is gone."""
    own: History = ()
    """The contents that the patching CPU itself may fetch; () if it does not execute the code."""
    cleaned: int = 0
    """The oldest of those that its cache of instructions may still hold."""

    def visible(self, cpu: Cpu) -> History:
        """Return the contents that a CPU may fetch."""
        if cpu.patches:
            return self.own
        return (self.child if cpu.forked else self.history)[cpu.floor :]

    def present(self, cpu: Cpu) -> History:
        """Return the newest content of a CPU's memory."""
        if cpu.patches:
            return self.own[-1:]
        return (self.child if cpu.forked else self.history)[-1:]


class Failure(NamedTuple):
    """A behaviour that must not happen."""

    kind: str
    text: str


class Move(NamedTuple):
    """One step of one CPU."""

    token: str
    """The name of the step, unique among the steps that are possible in its state."""
    text: str
    world: World | None
    """The next state; None after a failure."""
    failure: Failure | None = None
