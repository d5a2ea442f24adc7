"""cpc:::EVENT-MODE-COUNT: a probe for every COUNT events that the CPU has counted.

The virtual CPU counts one event, instructions, in both modes together.  It does not count
instructions that serve a probe, nor any while the CPU waits: `instructions-all-10000` fires at the
first block of code at or after each 10,000th instruction of the traced code.

Source: illumos uts/common/dtrace/dcpc.c; `PAPI_tot_ins` is the generic name of the event there
(libcpc's generic_events).
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from emu.engine.clock import NANOSECONDS, VirtualClock
from emu.guest.timers import Timer, Timers
from emu.isa import Isa
from emu.words import WORD_MASK
from providers.base import Attribute, DependencyClass, Framework, Provider, ProviderAttributes, Stability

# The smallest number of events between two firings (dcpc-min-overflow).
_FEWEST: Final = 5000
_NAME: Final = re.compile(r"(?:instructions|PAPI_tot_ins)-all-([0-9]{1,18})")
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


def events_of(name: str) -> int | None:
    """Return the events between two firings of a probe; None: there is no such probe."""
    found = _NAME.fullmatch(name)
    count = int(found[1]) if found else 0
    return count if count >= _FEWEST else None


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

    def __init__(self, framework: Framework, guest: CountingGuest) -> None:
        self._framework = framework
        self._guest = guest
        self._count = 0
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probe of the description."""
        events = events_of(description[3]) if description is not None else None
        if events is None or description is None or self._count >= _MOST:
            return
        if not self._framework.probe_lookup(self, "", "", description[3]):
            self._count += 1
            self._framework.probe_create(self, "", "", description[3], 0, _Overflow(events))

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
