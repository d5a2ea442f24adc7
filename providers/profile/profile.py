"""profile-N and tick-N: probes of time, made when they are named.

`profile-N` fires on every CPU, `tick-N` on one.  A number alone is a rate,
N per second; with a unit it is the interval.  The time is the guest's own, which stops while probes
are handled, so a profile does not depend on other probes.

Source: FreeBSD sys/cddl/dev/profile/profile.c.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from emu.guest.timers import Timer, Timers
from emu.isa import Isa
from emu.native.guest import LateArguments
from emu.support.words import WORD_MASK
from providers.base import Attribute, DependencyClass, Framework, Provider, ProviderAttributes, Stability

_SECOND: Final = 1_000_000_000
_UNITS: Final = {
    **dict.fromkeys(("ns", "nsec"), 1),
    **dict.fromkeys(("us", "usec"), 1_000),
    **dict.fromkeys(("ms", "msec"), 1_000_000),
    **dict.fromkeys(("s", "sec"), _SECOND),
    **dict.fromkeys(("m", "min"), 60 * _SECOND),
    **dict.fromkeys(("h", "hour"), 3600 * _SECOND),
    **dict.fromkeys(("d", "day"), 86400 * _SECOND),
}
# Nanoseconds; a shorter interval makes no probe (profile_interval_min).
_SHORTEST: Final = 200_000
_NAME: Final = re.compile(r"(profile|tick)-([0-9]{1,18})([A-Za-z]*)")
# The probes that exist before any is named.
_ALWAYS: Final = (
    *(f"profile-{rate}" for rate in (97, 199, 499, 997, 1999, 4001, 4999)),
    *(f"tick-{rate}" for rate in (1, 10, 100, 500, 1000, 5000)),
)
# The largest number of probes (profile_max).
_MOST: Final = 1000

_EVOLVING: Final = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.COMMON)
_UNSTABLE: Final = Attribute(Stability.UNSTABLE, Stability.UNSTABLE, DependencyClass.UNKNOWN)
_PRIVATE: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)


class TimedGuest(Protocol):
    """The interface of a guest for this provider."""

    isa: Isa
    timers: Timers

    def now(self) -> int:
        """Return virtual nanoseconds."""
        ...

    def pc(self) -> int:
        """Return the pc of the CPU."""
        ...


def interval_of(name: str) -> int | None:
    """Return the nanoseconds between two firings of a probe; None: there is no such probe."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    number, unit = int(found[2]), found[3].lower()
    if unit in {"", "hz"}:
        interval = _SECOND // number if number else 0
    elif unit in _UNITS:
        interval = number * _UNITS[unit]
    else:
        return None
    return interval if interval >= _SHORTEST else None


@dataclass(slots=True)
class _Probe:
    """A probe: its interval, and its timer while it is enabled."""

    interval: int
    late: bool
    """Whether it reports its delay, as profile-N does."""
    timer: Timer | None = None


class Profile(Provider):
    """The provider profile: probes of one rate each, made when a description names them."""

    name = "profile"
    attributes: ClassVar[ProviderAttributes] = ProviderAttributes(_EVOLVING, _UNSTABLE, _PRIVATE, _EVOLVING, _EVOLVING)

    def __init__(self, framework: Framework, guest: TimedGuest) -> None:
        self._framework = framework
        self._guest = guest
        self._count = 0
        framework.register(self)
        for name in _ALWAYS:
            self._create(name)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probe of the description."""
        if description is not None:
            self._create(description[3])

    def _create(self, name: str) -> None:
        interval = interval_of(name)
        if interval is None or self._count >= _MOST or self._framework.probe_lookup(self, "", "", name):
            return
        self._count += 1
        self._framework.probe_create(self, "", "", name, 0, _Probe(interval, name.startswith("profile")))

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Start the probe's timer."""
        arg.timer = self._guest.timers.start(self._guest.now(), arg.interval, self._firing(probe_id, late=arg.late))

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Stop the probe's timer."""
        if arg.timer is not None:
            self._guest.timers.stop(arg.timer)
            arg.timer = None

    def late_arguments(self, probe_id: int, arg: _Probe) -> LateArguments:
        """Return that arguments 5 to 9 are 0: a timer interrupts no call."""
        return LateArguments.NONE

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget a probe."""
        self._count -= 1

    def _firing(self, probe_id: int, *, late: bool) -> Callable[[int], object]:
        """Return the function that fires a probe: arg0 is the kernel's pc, or arg1 the user's."""
        guest, fire = self._guest, self._framework.probe

        def firing(delay: int) -> None:
            pc = guest.pc() & WORD_MASK
            kernel, user = (pc, 0) if guest.isa.is_kernel_address(pc) else (0, pc)
            fire(probe_id, kernel, user, delay if late else 0)

        return (lambda delay: guest.timers.everywhere(lambda: firing(delay))) if late else firing
