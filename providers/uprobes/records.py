"""Uprobes' books: probes, who wants them, and what is under way in each process and thread.

Source: Linux 6.12 include/linux/uprobes.h, kernel/events/uprobes.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from emu.displaced import Emulated, Stepped
from emu.frame import Frame
from emu.guest.linux.inodes import RegularFile
from emu.patcher import Patcher, Tracepoint

if TYPE_CHECKING:
    from emu.guest.linux.code import ProcessCode, SlotPages
    from emu.guest.linux.process import Process


class HandlerResult(IntEnum):
    """What a handler answers (UPROBE_HANDLER_*)."""

    KEEP = 0
    REMOVE = 1
    """This process need not be watched: its breakpoint goes, if all handlers say so and no filter
    wants it."""


@dataclass(eq=False)
class Consumer:
    """Who wants to know (struct uprobe_consumer); one of the first two is needed.

    `handler(registers)` runs before the instruction, `ret_handler(function, registers)` when the
    function it begins has returned, with the pc there.  `filter(process)` says which processes are
    watched.
    """

    handler: Callable[[Frame], HandlerResult | None] | None = None
    ret_handler: Callable[[int, Frame], object] | None = None
    filter: Callable[[Process], bool] | None = None

    def wants(self, process: Process) -> bool:
        """Return whether a process is watched."""
        return self.filter is None or self.filter(process)


@dataclass(eq=False)
class Uprobe:
    """A probe: a place in a file, and its consumers, the newest first (struct uprobe)."""

    file: RegularFile
    offset: int
    ref_ctr_offset: int = 0
    consumers: list[Consumer] = field(default_factory=list)
    references: int = 1
    """Registrations, steps and pending returns that keep it."""
    treatment: Emulated | Stepped | None = None
    """What becomes of its instruction; None until the first time it is installed."""
    code: bytes = b""


@dataclass(eq=False)
class Installed:
    """A probe's breakpoint in one address space."""

    probe: Uprobe
    tracepoint: Tracepoint
    run: Callable[..., None] | None
    """The compiled plan of a simulated instruction."""
    counter: int = 0
    """Address of the reference counter that was incremented; 0: none (yet)."""
    slot: int = 0
    """Where its copy runs; 0: it has not run yet.

    Linux takes a slot for each hit; here a probe keeps its own, so that Unicorn need not translate
    it again.  No other probe uses it while this one is there: a thread may stand in it.
    """


@dataclass(eq=False)
class WatchedSpace:
    """An address space with probes."""

    process: Process
    code: ProcessCode
    patcher: Patcher
    slots: SlotPages
    installed: dict[int, Installed] = field(default_factory=dict)
    """By address."""
    trampoline: int = 0
    """The slot that return probes come back to; 0: none was needed yet."""


@dataclass(slots=True)
class PendingReturn:
    """A return that is being waited for (struct return_instance)."""

    probe: Uprobe
    function: int
    stack: int
    """The stack pointer on entry."""
    original: int
    """The true return address."""
    chained: bool
    """Whether the function was entered by a tail call: it returns for the one below as well."""


@dataclass(slots=True)
class Step:
    """An instruction that runs in a slot (struct uprobe_task, state SSTEP)."""

    space: WatchedSpace
    installed: Installed
    address: int
    slot: int
    move: Stepped
    saved: int
    """What the scratch register held."""
    flags: int
    """The flags before the step, where the CPU is told to trap by one."""
