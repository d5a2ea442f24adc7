"""A recording: everything that happened while probes fired, as data.

    recording -> firings -> steps

A step is one instruction of the guest, one decision of the emulator's, or one instruction of DIF.
`data` makes plain objects for JSON, which docs/step.md and recording.schema.json describe.  Numbers
of 64 bits are texts there (`0x...`), since JavaScript's numbers hold 53.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, Final

# The version of the format.  It changes when a field goes away or means something else.
VERSION: Final = 1


class StepError(Exception):
    """A firing cannot be shown; the message says why."""


class Stage(StrEnum):
    """The stages of a firing, in the order in which most firings pass them."""

    ENABLE = "enable"
    PATCHED = "patched bytes"
    EXCEPTION = "exception"
    FRAME = "trap frame"
    CHAIN = "handler chain"
    PROBE = "probe"
    CLAUSE = "D clause"
    DISPLACED = "displaced instruction"
    RETURN = "return"
    RESUME = "resume"
    DISABLED = "disabled"


class Mode(StrEnum):
    """The executor of a step."""

    KERNEL = "kernel"
    USER = "user"
    EMULATOR = "emulator"
    DIF = "DIF"


@dataclass(frozen=True, slots=True)
class Source:
    """A line of source code."""

    file: str
    line: int
    text: str = ""
    """"" where the file is not at hand."""


@dataclass(frozen=True, slots=True)
class Access:
    """One access to memory."""

    write: bool
    address: int
    size: int
    value: int
    """The value that was read or written."""
    before: int | None = None
    """The value that a write replaced; None for a read."""
    name: str = ""
    """The field of the trap frame, or the symbol, at the address."""

    @property
    def changes(self) -> bool:
        """Whether memory is different afterwards."""
        return self.write and self.before != self.value


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes of code that were written."""

    address: int
    where: str
    before: bytes
    after: bytes
    before_text: str
    after_text: str


@dataclass(frozen=True, slots=True)
class DifStep:
    """One instruction of DIF."""

    object: str
    """`predicate`, or the action: `action 1, trace`."""
    offset: int
    text: str
    registers: tuple[int, ...]
    """%r0 to %r7 afterwards."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a firing so far."""

    instructions: int = 0
    """Instructions of the guest, the displaced one not counted."""
    accesses: int = 0
    """Their accesses to memory."""
    traps: int = 0
    handlers: int = 0
    """Handlers that were asked."""
    dif: int = 0
    """Instructions of DIF."""

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both."""
        return Cost(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Step:
    """One step.  `registers` are those that it changed: (before, after)."""

    index: int
    stage: Stage
    mode: Mode
    where: str
    """module`symbol+offset."""
    pc: int
    code: bytes
    """The bytes of the instruction; empty for a decision."""
    text: str
    """The instruction in Intel syntax, or a title of the decision."""
    sentence: str
    """The event, and its cause."""
    source: Source | None = None
    registers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: tuple[Access, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)
    """Facts: addresses and values are numbers."""
    dif: DifStep | None = None
    patch: Patch | None = None
    cost: Cost = field(default_factory=Cost)
    out_of_line: bool = False
    """Whether it is code that exists only because of the probe: a copy, or what leads back."""
    fault: str = ""
    """The mistake that shows here, in a run with a fault."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the stack before the first step."""

    address: int
    value: int


@dataclass(frozen=True, slots=True)
class Firing:
    """One firing of a probe."""

    probe: str
    id: int
    execname: str
    pid: int
    arguments: tuple[int, ...]
    caller: str
    """The location of D's `caller` (of a program's probe `ucaller`); "" if unknown."""
    registers: Mapping[str, int]
    """All registers before the first step."""
    stack: tuple[Word, ...]
    """The words at the stack pointer before the first step."""
    frame: int | None
    """The address of the trap frame that the kernel's vector saved; None: it saved none."""
    listing: Mapping[str, tuple[str, ...]]
    """The probed function around the site: `before`, `enabled` and `after`."""
    steps: tuple[Step, ...]
    record: bytes = b""
    """The record in the principal buffer."""

    def of(self, stage: Stage) -> list[Step]:
        """Return the steps of a stage."""
        return [step for step in self.steps if step.stage is stage]


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one run."""

    isa: str
    guest: str
    trap_path: str
    clause: str
    command: str
    registers: tuple[str, ...]
    pc: str
    sp: str
    frame_fields: tuple[str, ...]
    """The words of the kernel's trap frame, from its address on."""
    word: int
    """Bytes of a machine word."""
    program: str
    """The D program as DIF."""
    enabling: tuple[Step, ...]
    """The patching, if it was asked for; the player shows it before each firing."""
    firings: tuple[Firing, ...]
    output: str
    """The output of dtrace."""
    notes: tuple[str, ...] = ()
    """Parts that are left out or approximated, a line each."""
    fault: str = ""
    """The mistake that was made on purpose; "" for none."""
    ending: str = ""
    """How the run ended, if it ended badly."""

    def data(self) -> dict[str, Any]:
        """Return it as plain objects for JSON."""
        return {"format": "trapline step", "version": VERSION, **_plain(self)}


# Fields that are counts and sizes: numbers of JSON, not texts.
_COUNTS: Final = frozenset(
    {"index", "id", "pid", "size", "line", "offset", "word", "instructions", "accesses", "traps", "handlers", "dif"}
)


def _plain(value: Any, name: str = "") -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name), one.name) for one in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (bool, str)) or value is None:
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, int):
        return value if name in _COUNTS else hex(value)
    if isinstance(value, Sequence):
        return [_plain(one) for one in value]
    raise TypeError(f"{name}: {value!r}")
