"""The results of measuring one mechanism on one ISA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from trapline.cost.hit_work import Events

# Bytes of a cache line, and of a page.
LINE: Final = 64
PAGE: Final = 4096


class Part(StrEnum):
    """The purpose of an instruction of a hit."""

    ENTRY = "trap entry"
    """The code from the vector to the complete trap frame; for a patched jump, the jump."""
    DISPATCH = "dispatch"
    """The code that calls the handlers, and that acts on their answer."""
    ARGUMENTS = "arguments"
    """The code of the kernel that loads the arguments and calls dtrace_probe()."""
    DISPLACED = "displaced instruction"
    """The code that replaces the displaced instruction."""
    RETURN = "return"
    """The code that restores the registers and returns."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """One hit, as it was recorded."""

    parts: Mapping[Part, int] = field(default_factory=dict)
    """The number of the guest's instructions in each part."""
    dif: int = 0
    """The number of instructions of D's virtual machine."""
    accesses: int = 0
    """The number of accesses of the guest's instructions to memory."""
    lines: int = 0
    """The number of accessed cache lines of 64 bytes, without that of the probe site."""
    pages: int = 0
    """The number of accessed pages of 4 KiB, without that of the probe site."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The cost of a probe that does not fire; None: it cannot be measured here."""

    code: float | None = 0.0
    """The number of bytes of code at each site."""
    rest: float | None = 0.0
    """The number of instructions of each pass while no probe is enabled."""
    elsewhere: float | None = 0.0
    """The number of instructions of each pass while another probe of the mechanism is enabled."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cost of one hit."""

    isa: str
    mechanism: str
    what: str
    """The description of the probe site."""
    instructions: float
    """The number of the guest's instructions that a run with another probe does not execute."""
    events: Events
    """The events that the model has prices for."""
    exceptions: float
    """The number of exceptions that a run without the probe does not have."""
    hits: int
    """The number of counted hits."""
    anatomy: Anatomy = field(default_factory=Anatomy)
    idle: Idle = field(default_factory=Idle)
    modelled: bool = True
    """Whether the guest's own kernel executes the hit; False: the emulator does, so that only
    instructions of the program itself are counted."""
