"""The record of one hit of a breakpoint, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from emu.plans import Plan


@dataclass(frozen=True, slots=True)
class CpuSnapshot:
    """The CPU at one moment: instructions executed, and registers by name."""

    instructions: int
    registers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AskedHandler:
    """One handler of the chain and what it answered."""

    handler: str
    answer: int


@dataclass(frozen=True, slots=True)
class RecordedFiring:
    """One call of dtrace_probe()."""

    probe_id: int
    arguments: tuple[int, ...]
    caller: int


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A word the displaced instruction wrote."""

    address: int
    size: int
    before: int
    after: int


@dataclass(slots=True)
class Hit:
    """Everything seen of one breakpoint; complete when `resumed` is there."""

    address: int
    trapped: CpuSnapshot
    frame_address: int | None = None
    """Where the guest's vector saved the trap frame; None on the host trap path."""
    frame: Mapping[str, int] = field(default_factory=dict)
    asked_at: CpuSnapshot | None = None
    asked: list[AskedHandler] = field(default_factory=list)
    firings: list[RecordedFiring] = field(default_factory=list)
    returning: CpuSnapshot | None = None
    resumed: CpuSnapshot | None = None
    memory: Sequence[MemoryChange] = ()
    plan: Plan | None = None
