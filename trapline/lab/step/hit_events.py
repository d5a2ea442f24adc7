"""The raw record of a hit: snapshots of the CPU, in order, before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from emu.displaced.plans import Plan


class Kind(Enum):
    """The kind of an event."""

    FETCH = auto()
    """The CPU is about to execute the patched instruction."""
    EXECUTE = auto()
    """The CPU is about to execute an instruction of the guest."""
    CALLED = auto()
    """dtrace_invop() or dtrace_probe() was called."""
    ASKED = auto()
    ANSWERED = auto()
    FIRED = auto()
    DIF = auto()
    RECORDED = auto()
    UNWANTED = auto()
    """The predicate was false."""
    PLANNED = auto()
    """The emulator executes the displaced instruction's plan."""
    MOVED = auto()
    """A handler has set the registers itself."""
    ELSEWHERE = auto()
    """The program ran for a while without being recorded."""
    RESUMED = auto()
    STALE = auto()
    """The CPU executes an instruction that memory does not have any more."""
    AFTER = auto()
    """The CPU is about to execute an instruction of the program behind the resume."""


@dataclass(frozen=True, slots=True)
class RawAccess:
    """An access to memory; of a write what was there before."""

    write: bool
    address: int
    size: int
    value: int
    before: int | None = None


@dataclass(slots=True)
class Event:
    """One event; the registers are those before it."""

    kind: Kind
    pc: int
    registers: Mapping[str, int]
    instructions: int
    code: bytes = b""
    """The bytes at the pc, as they are then."""
    name: str = ""
    """A handler, a gate, or a probe."""
    answer: int = 0
    arguments: tuple[int, ...] = ()
    probe_id: int = 0
    caller: int = 0
    dif: tuple[str, int, str, tuple[int, ...]] | None = None
    """Object, offset, text, registers afterwards."""
    plan: Plan | None = None
    moved: bool = False
    """Whether a handler has set the interrupted pc itself."""
    record: bytes = b""
    accesses: list[RawAccess] = field(default_factory=list)


@dataclass(slots=True)
class Hit:
    """The events from a patched instruction to the resume."""

    address: int
    events: list[Event] = field(default_factory=list)
    stack: tuple[tuple[int, int], ...] = ()
    frame: int | None = None
    fired: bool = False
    """Whether an enabling ran, its predicate being true."""
    thread: tuple[str, int] = ("", 0)
    handling: bool = False
    """Whether the guest's own handler runs."""
    over: bool = False
    taken: bool = False
    """Whether it began with a breakpoint or a window; False: with the firing itself."""
    after: int = 0
    """The number of instructions behind the resume that are recorded already."""
    window: int | None = None
    """Its end, if it is a stretch of the program's own code."""
    broken: str = ""
    """Why it does not end with a resume; "" if it does."""
