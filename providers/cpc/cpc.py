"""cpc:::EVENT-MODE-COUNT: a probe for every COUNT events that the CPU has counted.

The virtual CPU counts one event, instructions, in both modes together.  It does not count
instructions that serve a probe, nor any while the CPU waits: `instructions-all-10000` fires at the
first block of code at or after each 10,000th instruction of the traced code.  If the guest is a
program without a kernel in the guest, all instructions are the program's: mode `user` is `all`.

Source: illumos uts/common/dtrace/dcpc.c; `PAPI_tot_ins` is the generic name of the event there
(libcpc's generic_events).
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from emu.engine.clock import NANOSECONDS, VirtualClock
from emu.guest.timers import Timer, Timers
from emu.isa import Isa
from emu.words import WORD_MASK
from providers.base import Attribute, DependencyClass, Framework, Provider, ProviderAttributes, Stability

# The smallest number of events between two firings (dcpc-min-overflow).
_FEWEST: Final = 5000
# Event, mode, perhaps a mask of the event's kind, count (dcpc_provide).
_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)-([a-z]+)(-0x[0-9a-fA-F]{1,16})?-([0-9]{1,18})", re.ASCII)
_COUNTED: Final = ("instructions", "PAPI_tot_ins")
_MODES: Final = ("all", "user", "kernel")
# The largest number of probes (DCPC_MAX_OVERFLOWS is smaller: it is the number of counters of a real CPU).
_MOST: Final = 1000

_EVOLVING: Final = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.COMMON)
_PRIVATE: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)
_OF_CPU: Final = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.CPU)


class CountingGuest(Protocol):
    """The interface of a guest for this provider."""

    isa: Isa
    timers: Timers
    clock: VirtualClock

    def pc(self) -> int:
        """Return the pc of the CPU."""
        ...


def events_of(name: str, modes: Sequence[str] = ("all",)) -> int | str:
    """Return the events between two firings of a probe, or why there is no such probe.

    `modes` are those in which the CPU counts.
    """
    found = _NAME.fullmatch(name)
    if found is None or found[2] not in _MODES:
        return "a name is EVENT-MODE-COUNT, such as instructions-all-10000"
    event, mode, mask, count = found[1], found[2], found[3], int(found[4])
    if event not in _COUNTED or mask:
        return (
            "the virtual CPU counts instructions (PAPI_tot_ins) only: it has no caches, branch predictor or pipeline,"
            " and to count loads, stores or branches would take longer than to execute them"
        )
    if mode not in modes:
        return f"the virtual CPU counts in mode {' and '.join(modes)} here, not in mode {mode} alone"
    return count if count >= _FEWEST else f"the count is at least {_FEWEST}"


@dataclass(slots=True)
class _Overflow:
    """A probe: its count, and while it is enabled the count at which it fires and a timer."""

    events: int
    due: int = 0
    timer: Timer | None = None


class Cpc(Provider):
    """See the module."""

    name = "cpc"
    attributes: ClassVar[ProviderAttributes] = ProviderAttributes(_EVOLVING, _PRIVATE, _PRIVATE, _OF_CPU, _EVOLVING)

    def __init__(self, framework: Framework, guest: CountingGuest, modes: Sequence[str] = ("all",)) -> None:
        """Count a guest's instructions.

        `modes` are the modes that probes may have: the guest executes all its instructions in each.
        """
        self._framework = framework
        self._modes = modes
        self._guest = guest
        self._count = 0
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probe of the description."""
        if description is None or self._count >= _MOST:
            return
        events = events_of(description[3], self._modes)
        if isinstance(events, str):
            return
        if not self._framework.probe_lookup(self, "", "", description[3]):
            self._count += 1
            self._framework.probe_create(self, "", "", description[3], 0, _Overflow(events))

    def refusal(self, name: str) -> str:
        """Return why there is no probe of this name."""
        events = events_of(name, self._modes)
        if isinstance(events, str):
            return events
        return f"there are {_MOST} probes already" if self._count >= _MOST else ""

    def enable(self, probe_id: int, arg: _Overflow) -> None:
        """Start to count."""
        arg.due = self._guest.clock.executed + arg.events
        self._wait(probe_id, arg)

    def disable(self, probe_id: int, arg: _Overflow) -> None:
        """Stop counting."""
        if arg.timer is not None:
            self._guest.timers.stop(arg.timer)
            arg.timer = None

    def destroy(self, probe_id: int, arg: _Overflow) -> None:
        """Forget a probe."""
        self._count -= 1

    def _wait(self, probe_id: int, arg: _Overflow) -> None:
        """Check again at the earliest time when the missing instructions can have been executed."""
        clock = self._guest.clock
        missing = -(-(arg.due - clock.executed) * NANOSECONDS // clock.rate)
        arg.timer = self._guest.timers.start(
            clock.now(), missing, lambda _late: self._look(probe_id, arg), keeps_on=False
        )

    def _look(self, probe_id: int, arg: _Overflow) -> None:
        """Fire a probe if its count is reached: time may have passed without an instruction.

        arg0 is the kernel's pc, arg1 the user's, one of them 0; arg2 is the number of the only
        counter.
        """
        guest = self._guest
        executed = guest.clock.executed
        timer = arg.timer
        if timer is not None:
            guest.timers.stop(timer)
        if executed >= arg.due:
            # If one check finds several overflows, the probe fires once, as an interrupt does.
            arg.due += (executed - arg.due) // arg.events * arg.events + arg.events
            pc = guest.pc() & WORD_MASK
            kernel, user = (pc, 0) if guest.isa.is_kernel_address(pc) else (0, pc)
            self._framework.probe(probe_id, kernel, user, 0)
        if arg.timer is timer:  # and was not disabled meanwhile
            self._wait(probe_id, arg)
