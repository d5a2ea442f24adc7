"""A recorded trace as plain data, independent of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from emu.support.immutable import immutable


class ExportError(Exception):
    """A trace that cannot be written in a format; the message says why, on one line."""


class Phase(Enum):
    """The function to which an event belongs."""

    ENTRY = "entry"
    RETURN = "return"
    INSTANT = "instant"


class Stack(tuple[str, ...]):
    """The names of a stack's frames, innermost first."""

    __slots__ = ()


# A recorded value: a number, a text, bytes, a stack.
Value = int | str | bytes | Stack


@immutable
class Event:
    """One firing of a probe."""

    time: int
    """Virtual nanoseconds."""
    cpu: int
    pid: int
    tid: int
    process: str
    """The name of the process."""
    phase: Phase
    provider: str
    module: str
    function: str
    name: str
    values: Mapping[str, Value]
    """The recorded values, by name."""

    @property
    def title(self) -> str:
        """The function, or the probe's full name where it is in none."""
        return self.function or f"{self.provider}:{self.module}::{self.name}"

    @property
    def probe(self) -> str:
        """The full name of the probe."""
        return f"{self.provider}:{self.module}:{self.function}:{self.name}"

    @property
    def stack(self) -> Stack | None:
        """The first stack among the values, None if there is none."""
        return next((value for value in self.values.values() if isinstance(value, Stack)), None)


class Count(NamedTuple):
    """One element of an aggregation."""

    name: str
    function: str
    """The aggregating function."""
    keys: tuple[Value, ...]
    value: int | Mapping[float, int]
    """A number; of a distribution the count by the lowest value of a bucket."""


@dataclass(slots=True)
class Recording:
    """A whole trace."""

    isa: str
    events: list[Event] = field(default_factory=list)
    """In the order of their times."""
    counts: list[Count] = field(default_factory=list)
    end: int = 0
    """Virtual nanoseconds at the end of the trace."""


class Slice(NamedTuple):
    """A function from its entry to its return."""

    entry: Event
    end: int
    values: Mapping[str, Value]
    """The values that the return recorded."""
    depth: int
    path: tuple[str, ...]
    """The functions around it, the outermost first, and itself."""


def slices(recording: Recording) -> Iterator[Slice]:
    """Match entries and returns, for each thread.

    A return without an entry is left out.  An entry without a return, because its function was left
    in another way or the trace ended, lasts as long as the function around it.
    """
    stacks: dict[tuple[int, int], list[Event]] = {}
    for event in recording.events:
        stack = stacks.setdefault((event.pid, event.tid), [])
        if event.phase is Phase.ENTRY:
            stack.append(event)
        elif event.phase is Phase.RETURN and any(_same(entry, event) for entry in stack):
            while not _same(stack[-1], event):
                yield _slice(stack, event.time, {})
                stack.pop()
            yield _slice(stack, event.time, event.values)
            stack.pop()
    for stack in stacks.values():
        while stack:
            yield _slice(stack, max(recording.end, stack[-1].time), {})
            stack.pop()


def _same(entry: Event, leave: Event) -> bool:
    return (entry.provider, entry.module, entry.function) == (leave.provider, leave.module, leave.function)


def _slice(stack: list[Event], end: int, values: Mapping[str, Value]) -> Slice:
    return Slice(stack[-1], end, values, len(stack) - 1, tuple(event.title for event in stack))


class Running(NamedTuple):
    """A thread on a CPU, from one context switch to the next."""

    cpu: int
    process: str
    pid: int
    tid: int
    start: int
    end: int


def running(recording: Recording) -> Iterator[Running]:
    """Match `sched:::on-cpu` and `sched:::off-cpu`, for each CPU.

    A thread runs until it leaves the CPU, another one gets it, or the trace ends.  If it was
    running when the trace began, its first slice is left out.
    """
    current: dict[int, Event] = {}
    for event in recording.events:
        if event.provider != "sched" or event.name not in {"on-cpu", "off-cpu"}:
            continue
        before = current.pop(event.cpu, None)
        if before is not None:
            yield _running(before, event.time)
        if event.name == "on-cpu":
            current[event.cpu] = event
    for event in current.values():
        yield _running(event, max(recording.end, event.time))


def _running(event: Event, end: int) -> Running:
    return Running(event.cpu, event.process, event.pid, event.tid, event.time, end)


def plain(value: Value) -> Any:
    """Return a value as JSON has it: bytes in hexadecimal, a stack as a list."""
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, tuple) else value


def cell(value: Value) -> str | int:
    """Return a value as one cell of a table: a stack with its outermost frame first."""
    if isinstance(value, tuple):
        return ";".join(reversed(value))
    return value.hex() if isinstance(value, bytes) else value
