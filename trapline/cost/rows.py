"""The results of measuring one mechanism on one ISA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trapline.cost.events import Events


class Part(StrEnum):
    """What an instruction of a hit is for."""

    ENTRY = "trap entry"
    """From the vector until the trap frame is complete; of a patched jump: the jump."""
    DISPATCH = "dispatch"
    """The way to the handlers, and what becomes of their answer."""
    ARGUMENTS = "arguments"
    """Code of the kernel that loads the arguments and calls dtrace_probe()."""
    DISPLACED = "displaced instruction"
    """What is executed instead of the instruction that the patch replaces."""
    RETURN = "return"
    """Restoring the registers, and the way back."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """One hit, as it was recorded."""

    parts: Mapping[Part, int] = field(default_factory=dict)
    """Instructions of the guest."""
    dif: int = 0
    """Instructions of D's virtual machine."""
    accesses: int = 0
    """Accesses of those instructions to memory."""
    lines: int = 0
    """Cache lines of 64 bytes that code and data touch, without the line of the probe's place."""
    pages: int = 0
    """Pages of 4 KiB, each an entry of a TLB, without that of the probe's place."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What a probe costs when it does not fire; None: it cannot be measured here."""

    code: float | None = 0.0
    """Bytes of code at each place."""
    rest: float | None = 0.0
    """Instructions of each pass, nothing being enabled."""
    elsewhere: float | None = 0.0
    """The same while another probe of the mechanism is enabled."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one hit costs."""

    isa: str
    mechanism: str
    what: str
    """What is probed."""
    instructions: float
    """Instructions of the guest that a run with another probe enabled does not execute."""
    events: Events
    """What the model has prices for."""
    exceptions: float
    """All exceptions that a run without the probe does not have, as they were counted."""
    hits: int
    """The number of hits that were counted."""
    anatomy: Anatomy = field(default_factory=Anatomy)
    idle: Idle = field(default_factory=Idle)
