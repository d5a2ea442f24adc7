"""Fasttrap's records: probes, tracepoints, and the processes that they are in.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/fasttrap_impl.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from emu.displaced.decision import Emulated, OutOfLine
from emu.displaced.frame import Frame
from emu.displaced.plans import Operation
from emu.engine.hits.hit_steps import Argument
from emu.probe.patcher import Patcher, Tracepoint

if TYPE_CHECKING:
    from emu.guest.processes import Code, Process, Slots


class ProbeType(IntEnum):
    """The type of a probe (fasttrap_probe_type_t)."""

    NONE = 0
    ENTRY = 1
    RETURN = 2
    OFFSETS = 3
    POST_OFFSETS = 4
    IS_ENABLED = 5


# Types that fire once the displaced instruction is done.
AFTER = frozenset({ProbeType.RETURN, ProbeType.POST_OFFSETS})


@dataclass(eq=False)
class Target:
    """A process with tracepoints (fasttrap_proc_t); it may have ended."""

    process: Process
    code: Code
    patcher: Patcher
    slots: Slots
    live: bool = True
    """False from its exit or exec on: its tracepoints are dead (retired)."""


@dataclass(slots=True, eq=False)
class Point:
    """A tracepoint of a process (fasttrap_tracepoint_t).

    It has one displaced instruction, and the probes that fire there.
    """

    target: Target
    address: int
    decision: Emulated | OutOfLine
    tracepoint: Tracepoint
    before: list[Probe] = field(default_factory=list)
    """Probes that fire before the instruction, the latest enabled first."""
    after: list[Probe] = field(default_factory=list)
    """Probes that fire after it."""
    native: int | None = None
    """The answer that makes machine code execute the plan of an emulated instruction.

    0: impossible; None: not asked for yet.
    """


class Located(NamedTuple):
    """The locations of arguments, after some operations."""

    operations: tuple[Operation, ...]
    arguments: tuple[Argument, ...]
    late: tuple[Argument, ...] | None
    """Locations of arguments 5 to 9; None: Python must read one of them."""


@dataclass(slots=True, eq=False)
class Probe:
    """A probe (fasttrap_probe_t)."""

    target: Target
    type: ProbeType
    function: int
    """Address of its function."""
    size: int
    """Bytes of its function."""
    addresses: tuple[int, ...]
    """The addresses of its tracepoints."""
    id: int = 0
    enabled: bool = False
    read: Callable[[Frame], tuple[int, ...]] | None = None
    """Arguments of a marker; None: those of the function."""
    locate: Callable[[int], Located | None] | None = None
    """Returns the locations of arguments at a marker's site, for machine code; None: Python reads
    them."""
    questions: frozenset[int] = frozenset()
    """The addresses where the program tests whether the probe is enabled (is-enabled tracepoints)."""
    types: tuple[tuple[str, str, int], ...] = ()
    """Native and translated type of each argument, and the index of the native argument."""
    semaphores: tuple[int, ...] = ()
    """Addresses of counters by which the program knows that its probes are enabled."""
