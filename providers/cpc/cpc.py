"""cpc:::EVENT-MODE-COUNT: a probe for every COUNT events that the CPU has counted.

The virtual CPU counts instructions, loads, stores, instructions that do either, and branches.  It
does not count instructions that serve a probe, nor any while the CPU waits:
`instructions-all-10000` fires at the first block of code at or after each 10,000th instruction of
the traced code.  Instructions of both modes are counted by the clock; everything else by
`emu.engine.events.event_counts`, on guests with one CPU.  If the guest is a program without a
kernel in the guest, all instructions are the program's: mode `user` is `all`, and mode `kernel`
counts nothing, because Python performs the system calls.

Source: illumos uts/common/dtrace/dcpc.c; `PAPI_tot_ins`, `PAPI_ld_ins` and so on are the generic
names of the events there (libcpc's generic_events).
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, NamedTuple, Protocol

from emu.engine.events.event_counts import Alarm, EventCounts
from emu.engine.events.event_words import Counted, Mode
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.timers import Timer, Timers
from emu.isa import Isa
from emu.native.guest import LateArguments
from emu.support.words import WORD_MASK
from providers.base import Attribute, DependencyClass, Framework, Provider, ProviderAttributes, Stability

# The smallest number of events between two firings (dcpc-min-overflow).
_FEWEST: Final = 5000
# Event, mode, perhaps a mask of the event's kind, count (dcpc_provide).
_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)-([a-z]+)(-0x[0-9a-fA-F]{1,16})?-([0-9]{1,18})", re.ASCII)
_COUNTED: Final = {
    "instructions": Counted.INSTRUCTIONS,
    "PAPI_tot_ins": Counted.INSTRUCTIONS,
    "loads": Counted.LOADS,
    "PAPI_ld_ins": Counted.LOADS,
    "stores": Counted.STORES,
    "PAPI_sr_ins": Counted.STORES,
    "accesses": Counted.ACCESSES,
    "PAPI_lst_ins": Counted.ACCESSES,
    "branches": Counted.BRANCHES,
    "PAPI_br_ins": Counted.BRANCHES,
}
_ALL, _KERNEL = "all", "kernel"
_MODES: Final = {_ALL: tuple(Mode), "user": (Mode.USER,), _KERNEL: (Mode.KERNEL,)}
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


class Wanted(NamedTuple):
    """The events of a probe."""

    what: Counted
    modes: tuple[Mode, ...]
    number: int
    """The events between two firings."""
    by_clock: bool
    """Whether the clock counts them."""


def events_of(name: str, *, everything: bool = True, kernel: bool = True) -> Wanted | str:
    """Return the events of a probe, or why there is no such probe.

    `everything`: not only the clock counts; `kernel`: a kernel runs on the CPU.
    """
    found = _NAME.fullmatch(name)
    if found is None or found[2] not in _MODES:
        return "a name is EVENT-MODE-COUNT, such as instructions-all-10000"
    event, mode, mask, count = found[1], found[2], found[3], int(found[4])
    if event not in _COUNTED or mask:
        known = [one for one in _COUNTED if not one.startswith("PAPI")]
        return f"the virtual CPU counts {', '.join(known)}: it has no caches, branch predictor or pipeline"
    if mode == _KERNEL and not kernel:
        return "no kernel runs on this guest's CPU: Python performs the system calls of Linux programs"
    by_clock = _COUNTED[event] is Counted.INSTRUCTIONS and (mode == _ALL or not kernel)
    if not by_clock and not everything:
        return f"a guest with several CPUs counts only instructions, in mode {_ALL if kernel else 'all and user'}"
    if count < _FEWEST:
        return f"the count is at least {_FEWEST}"
    return Wanted(_COUNTED[event], _MODES[mode], count, by_clock)


class _Waiting:
    """Waits for events, with a timer that goes off once."""

    def __init__(self, guest: CountingGuest, events: int, fire: Callable[[], object]) -> None:
        self._guest = guest
        self._events = events
        self._fire = fire
        self._timer: Timer | None = None

    def stop(self) -> None:
        """Stop counting."""
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._guest.timers.stop(self._timer)
            self._timer = None

    def _start(self, interval: int, then: Callable[[], object]) -> None:
        """Start the timer, instead of another one; `interval` in nanoseconds."""
        self._cancel()

        def gone_off(_late: int) -> None:
            self._cancel()
            then()

        self._timer = self._guest.timers.start(self._guest.clock.now(), interval, gone_off, keeps_on=False)


class _ByClock(_Waiting):
    """Waits for instructions by the timer: `now()` cannot reach a time before they are executed."""

    def __init__(self, guest: CountingGuest, events: int, fire: Callable[[], object]) -> None:
        super().__init__(guest, events, fire)
        self._due = guest.clock.executed + events
        self._wait()

    def _wait(self) -> None:
        """Check again at the earliest time when the missing instructions can have been executed."""
        clock = self._guest.clock
        self._start(-(-(self._due - clock.executed) * NANOSECONDS // clock.rate), self._look)

    def _look(self) -> None:
        """Fire if the count is reached: time may have passed without an instruction."""
        executed = self._guest.clock.executed
        reached = executed >= self._due
        if reached:
            self._due = _next(self._due, self._events, executed)
        self._wait()
        if reached:
            self._fire()


class _ByAlarm(_Waiting):
    """Waits for events by an alarm, and fires between two blocks."""

    def __init__(self, guest: CountingGuest, counts: EventCounts, wanted: Wanted, fire: Callable[[], object]) -> None:
        super().__init__(guest, wanted.number, fire)
        self._counts = counts
        due = counts.total(wanted.what, wanted.modes) + wanted.number
        self._alarm = Alarm(wanted.what, wanted.modes, due, self._rang)
        counts.add(self._alarm)

    def stop(self) -> None:
        """Stop counting."""
        super().stop()
        self._counts.remove(self._alarm)

    def _rang(self) -> None:
        """End the run before the next block: a firing may stop the probe, and with it the hook."""
        alarm = self._alarm
        alarm.due = _next(alarm.due, self._events, self._counts.total(alarm.what, alarm.modes))
        self._start(1, self._fire)


def _next(due: int, events: int, reached: int) -> int:
    """Return the next count that is due.

    If several were reached, there is one firing, as there is one interrupt.
    """
    return due + (reached - due) // events * events + events


@dataclass(slots=True)
class _Overflow:
    """A probe: its events, and while it is enabled what waits for them."""

    wanted: Wanted
    waiting: _ByClock | _ByAlarm | None = None


class Cpc(Provider):
    """The provider cpc: its probes, and the counters of events that make them fire."""

    name = "cpc"
    attributes: ClassVar[ProviderAttributes] = ProviderAttributes(_EVOLVING, _PRIVATE, _PRIVATE, _OF_CPU, _EVOLVING)

    def __init__(
        self,
        framework: Framework,
        guest: CountingGuest,
        counts: EventCounts | None,
        *,
        kernel: bool = True,
    ) -> None:
        """Count a guest's events.

        `counts` counts what the clock does not; None: the guest has several CPUs.  `kernel`: a
        kernel runs on the guest's CPU.
        """
        self._framework = framework
        self._kernel = kernel
        self._guest = guest
        self.counts = counts
        """What counts the events that the clock does not; None: nothing does."""
        self._count = 0
        framework.register(self)

    def _events(self, name: str) -> Wanted | str:
        return events_of(name, everything=self.counts is not None, kernel=self._kernel)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probe of the description."""
        if description is None or self._count >= _MOST:
            return
        wanted = self._events(description[3])
        if isinstance(wanted, str):
            return
        if not self._framework.probe_lookup(self, "", "", description[3]):
            self._count += 1
            self._framework.probe_create(self, "", "", description[3], 0, _Overflow(wanted))

    def refusal(self, name: str) -> str:
        """Return why there is no probe of this name."""
        wanted = self._events(name)
        if isinstance(wanted, str):
            return wanted
        return f"there are {_MOST} probes already" if self._count >= _MOST else ""

    def enable(self, probe_id: int, arg: _Overflow) -> None:
        """Start to count."""
        fire = partial(self._fire, probe_id)
        if arg.wanted.by_clock or self.counts is None:
            arg.waiting = _ByClock(self._guest, arg.wanted.number, fire)
        else:
            arg.waiting = _ByAlarm(self._guest, self.counts, arg.wanted, fire)

    def disable(self, probe_id: int, arg: _Overflow) -> None:
        """Stop counting."""
        if arg.waiting is not None:
            arg.waiting.stop()
            arg.waiting = None

    def late_arguments(self, probe_id: int, arg: _Overflow) -> LateArguments:
        """Return that arguments 5 to 9 are 0: a timer interrupts no call."""
        return LateArguments.NONE

    def destroy(self, probe_id: int, arg: _Overflow) -> None:
        """Forget a probe."""
        self._count -= 1

    def _fire(self, probe_id: int) -> None:
        """Fire a probe.

        arg0 is the kernel's pc, arg1 the user's, one of them 0; arg2 is the number of the only
        counter.
        """
        pc = self._guest.pc() & WORD_MASK
        kernel, user = (pc, 0) if self._guest.isa.is_kernel_address(pc) else (0, pc)
        self._framework.probe(probe_id, kernel, user, 0)
