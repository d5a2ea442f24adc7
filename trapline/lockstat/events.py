"""The events of lockstat by number: their probes and meanings.

Source: FreeBSD cddl/contrib/opensolaris/cmd/lockstat/lockstat.c (g_event_info).  A lock with
readers and writers passes the kind as an argument of the probe (sys/sys/lockstat.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

# Events are numbered below this; most numbers are not used.
NUMBERS: Final = 64


class Kind(Enum):
    """Kinds of events, by the flag that selects all of a kind."""

    CONTENTION = "C"
    HOLD = "H"
    INTERRUPT = "I"
    ERROR = "E"


TITLES: Final = {
    Kind.CONTENTION: "Contention",
    Kind.HOLD: "Hold-time",
    Kind.INTERRUPT: "Interrupt",
    Kind.ERROR: "Error",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of thing that happens."""

    number: int
    kind: Kind
    description: str
    probe: str
    predicate: str = ""
    """An additional condition; for a hold event it is tested when the lock is taken."""
    acquire: str = ""
    """The probe at its start, if there is one."""
    units: str = "nsec"
    header: str = "Lock"


def _contention(number: int, description: str, name: str, predicate: str = "") -> Event:
    return Event(number, Kind.CONTENTION, description, f"lockstat:::{name}", predicate)


def _hold(number: int, description: str, lock: str, predicate: str = "") -> Event:
    acquire, release = (f"lockstat:::{lock}-{what}" for what in ("acquire", "release"))
    return Event(number, Kind.HOLD, description, release, predicate, acquire)


# Number of the profiling interrupt.
PROFILE: Final = 56
# By number.  The last three have no probe: they never happen, and are only listed.
EVENTS: Final = {
    event.number: event
    for event in (
        _contention(0, "Adaptive mutex spin", "adaptive-spin"),
        _contention(1, "Adaptive mutex block", "adaptive-block"),
        _contention(2, "Spin lock spin", "spin-spin"),
        _contention(3, "Thread lock spin", "thread-spin"),
        _contention(4, "R/W writer blocked by writer", "rw-block", "arg2 == 0 && arg3 == 1"),
        _contention(5, "R/W writer blocked by readers", "rw-block", "arg2 == 0 && arg3 == 0 && arg4"),
        _contention(6, "R/W reader blocked by writer", "rw-block", "arg2 != 0 && arg3 == 1"),
        _contention(7, "R/W reader blocked by write wanted", "rw-block", "arg2 != 0 && arg3 == 0 && arg4"),
        _contention(8, "R/W writer spin on writer", "rw-spin", "arg2 == 0 && arg3 == 1"),
        _contention(9, "R/W writer spin on readers", "rw-spin", "arg2 == 0 && arg3 == 0 && arg4"),
        _contention(10, "R/W reader spin on writer", "rw-spin", "arg2 != 0 && arg3 == 1"),
        _contention(11, "R/W reader spin on write wanted", "rw-spin", "arg2 != 0 && arg3 == 0 && arg4"),
        _contention(12, "SX exclusive block", "sx-block", "arg2 == 0"),
        _contention(13, "SX shared block", "sx-block", "arg2 != 0"),
        _contention(14, "SX exclusive spin", "sx-spin", "arg2 == 0"),
        _contention(15, "SX shared spin", "sx-spin", "arg2 != 0"),
        _hold(32, "Adaptive mutex hold", "adaptive"),
        _hold(33, "Spin lock hold", "spin"),
        _hold(34, "R/W writer hold", "rw", "arg1 == 0"),
        _hold(35, "R/W reader hold", "rw", "arg1 != 0"),
        _hold(36, "SX shared hold", "sx", "arg1 != 0"),
        _hold(37, "SX exclusive hold", "sx", "arg1 == 0"),
        Event(PROFILE, Kind.INTERRUPT, "Profiling interrupt", "profile:::profile-{rate}", header="CPU+Pri_Class"),
        Event(
            60,
            Kind.ERROR,
            "Recursive lock entry detected",
            "lockstat:::rw-release",
            acquire="lockstat:::rw-acquire",
            units="(N/A)",
        ),
        Event(61, Kind.ERROR, "Lockstat enter failure", "", units="(N/A)"),
        Event(62, Kind.ERROR, "Lockstat exit failure", ""),
        Event(63, Kind.ERROR, "Lockstat record failure", "", units="(N/A)"),
    )
}


def of_kinds(letters: str) -> set[int]:
    """Return the numbers of the events of kinds, by their flags."""
    return {number for number, event in EVENTS.items() if event.kind.value in letters}
