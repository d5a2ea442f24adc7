"""The records of uprobes: probes, their consumers, and the state of each process and thread.

The data for machine code are in blocks of words (`emu.native.block`), which Python uses too.

Source: Linux 6.12 include/linux/uprobes.h, kernel/events/uprobes.c.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from emu.displaced.decision import Emulated, Stepped
from emu.displaced.frame import Frame
from emu.guest.linux.fs.regular import RegularFile
from emu.native.block import Block
from emu.probe.patcher import Patcher, Tracepoint

if TYPE_CHECKING:
    from emu.engine.hits.tracepoint_blocks import Firing
    from emu.guest.linux.mm.address_space import Space
    from emu.guest.linux.mm.user_code import ProcessCode, SlotPages
    from emu.guest.linux.process.process import Process


class HandlerResult(IntEnum):
    """The result of a handler (UPROBE_HANDLER_*)."""

    KEEP = 0
    REMOVE = 1
    """This process need not be watched: its breakpoint is removed, if all handlers return this and
    no filter needs it."""


@dataclass(eq=False)
class Consumer:
    """A consumer of a probe (struct uprobe_consumer); one of the first two is required.

    `handler(registers)` runs before the instruction.  `ret_handler(function, registers)` runs when
    the function that begins there has returned, with the pc at the return address.
    `filter(process)` says which processes are watched.

    `runs` and `ret_runs` are the machine code in place of the two handlers, in the form of
    `Framework.native_runs`; 0: none.  Code of `runs` has no arguments; code of `ret_runs` has the
    function and the two result registers.  It never removes the breakpoint.
    """

    handler: Callable[[Frame], HandlerResult | None] | None = None
    ret_handler: Callable[[int, Frame], object] | None = None
    filter: Callable[[Process], bool] | None = None
    runs: int = 0
    ret_runs: int = 0

    def wants(self, process: Process) -> bool:
        """Return whether a process is watched."""
        return self.filter is None or self.filter(process)


class ProbeWords(Block):
    """The data of a probe for machine code."""

    references: int
    """Number of registrations, steps and pending returns that refer to it."""
    known: int
    """Whether `returns` is valid; 0: Python runs the return handlers."""
    returns: int
    """Address of a list, ended by 0, of the firings at a return (`tracepoint_blocks.Firing`)."""


@dataclass(eq=False)
class Uprobe:
    """A probe: an offset in a file, and its consumers, the newest first (struct uprobe)."""

    file: RegularFile
    offset: int
    ref_ctr_offset: int = 0
    consumers: list[Consumer] = field(default_factory=list)
    words: ProbeWords = field(default_factory=lambda: ProbeWords(references=1))
    _shown: list[object] = field(default_factory=list)
    decision: Emulated | Stepped | None = None
    """How its instruction is displaced; None until it is installed for the first time."""
    code: bytes = b""

    @property
    def references(self) -> int:
        """Number of registrations, steps and pending returns that refer to it."""
        return self.words.references

    @references.setter
    def references(self, number: int) -> None:
        self.words.references = number

    def show_returns(self, firings: list[Firing]) -> None:
        """Store the probes that fire when the function returns, for machine code."""
        # Machine code may still use the previous list.
        table = (ctypes.c_uint64 * (len(firings) + 1))(*(firing.address for firing in firings))
        self._shown = [*self._shown[-1:], (table, firings)]
        self.words.returns, self.words.known = ctypes.addressof(table), 1


class InstalledWords(Block):
    """The data of a probe in an address space, for machine code."""

    probe: int
    """Address of its `ProbeWords`."""
    space: int
    """Address of its `SpaceWords`."""
    at: int
    """Address of the breakpoint."""
    slot: int
    """The slot of its copy; 0: it has not run yet.

    Linux takes a slot for each hit; here a probe keeps its own, so that Unicorn need not translate
    it again.  No other probe uses it while this one exists, because a thread may be in it.
    """
    after: int
    """The address after the instruction."""
    scratch: int
    """Address of the register that replaces the pc while the copy runs; 0: there is none."""
    absolute: int
    """Whether the pc is correct after the copy (`Stepped`)."""
    calls: int
    pushes_flags: int
    pops_flags: int
    counter: int
    """Address of the register that counts the repetitions of a string instruction; 0: it is none."""
    mask: int
    """The bits of that register that count."""
    compares: int
    """Whether the flags may end the repetitions too."""


@dataclass(eq=False)
class Installed:
    """A probe's breakpoint in one address space."""

    probe: Uprobe
    space: WatchedSpace
    tracepoint: Tracepoint
    counter: int = 0
    """Address of the reference counter that was incremented; 0: none (yet)."""
    words: InstalledWords = field(default_factory=InstalledWords)

    @property
    def move(self) -> Stepped:
        """The decision of its copy.  Raises TypeError if it has no copy."""
        if not isinstance(self.probe.decision, Stepped):
            raise TypeError(f"what is displaced at {self.words.address:#x} is not stepped")
        return self.probe.decision


class SpaceWords(Block):
    """The data of an address space for machine code."""

    trampoline: int
    """The slot to which probed functions return; 0: none was needed yet."""


@dataclass(eq=False)
class WatchedSpace:
    """An address space with probes."""

    process: Process
    code: ProcessCode
    patcher: Patcher
    slots: SlotPages
    installed: dict[int, Installed] = field(default_factory=dict)
    """Breakpoints by address; `put` and `take` change it."""
    words: SpaceWords = field(default_factory=SpaceWords)
    _addresses: dict[Uprobe, list[int]] = field(default_factory=dict)

    def put(self, installed: Installed) -> None:
        """Add a breakpoint."""
        address = installed.tracepoint.address
        self.installed[address] = installed
        self._addresses.setdefault(installed.probe, []).append(address)

    def take(self, address: int) -> Installed:
        """Remove the breakpoint at an address, and return it."""
        installed = self.installed.pop(address)
        addresses = self._addresses[installed.probe]
        addresses.remove(address)
        if not addresses:
            del self._addresses[installed.probe]
        return installed

    def addresses(self, probe: Uprobe) -> Sequence[int]:
        """Return the addresses of a probe's breakpoints."""
        return tuple(self._addresses.get(probe, ()))


@dataclass(eq=False)
class Books:
    """All records of one guest."""

    probes: dict[tuple[RegularFile, int], Uprobe] = field(default_factory=dict)
    """Probes by file and offset."""
    by_words: dict[int, Uprobe] = field(default_factory=dict)
    """Probes by the address of their words, which pending returns store."""
    spaces: dict[Space, WatchedSpace] = field(default_factory=dict)


class PendingReturn(Block):
    """A pending return (struct return_instance)."""

    probe: int
    """Address of its `ProbeWords`."""
    function: int
    stack: int
    """The stack pointer on entry."""
    original: int
    """The true return address."""
    chained: int
    """Whether the function was entered by a tail call: its return is also that of its caller."""


class TaskWords(Block):
    """The state of a thread (struct uprobe_task)."""

    step: int
    """Address of the `InstalledWords` of the probe whose copy it runs (state SSTEP); 0: none."""
    saved: int
    """The saved value of the scratch register."""
    flags: int
    """The trap flag before the step, on ISAs that step by a trap flag."""
    repetitions: int
    """The repetitions that a string instruction still had before the step."""
    depth: int
    """The number of pending returns."""
    returns: int
    """Address of the `PendingReturn`s, the first entered first."""
