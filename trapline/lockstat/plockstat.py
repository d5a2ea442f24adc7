"""Statistics of user-level locks, from the probes of the threads library, as by plockstat(1).

Each kind of event is a row of a table: the probes at its start and its end, and its name.  The D
program has the rows for the requested events; its aggregations are shown as one table for each
kind, ordered by total time.

Source: FreeBSD cddl/contrib/opensolaris/cmd/plockstat/plockstat.c (options, columns, which events),
and lib/libthr/plockstat.d (probes).  FreeBSD shows the function of the threads library itself for
the caller, because it looks for those of libc.so.1, which is Solaris'; here the caller is the first
function outside of the threads library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from emu.guest.base import Location
    from trapline.consumer.elements import Element

THREADS_LIBRARY: Final = "libthr.so"
_CALLER_FRAMES: Final = 5
_BAR: Final = "-" * 79
_WIDEST: Final = 24
# The options of the trace before the user's -x: the most used locks come first.
OPTIONS: Final[dict[str, str | None]] = {
    "strsize": "32",
    "bufsize": "64k",
    "aggsize": "256k",
    "aggrate": "1sec",
    "aggsortrev": None,
}


class Clock(NamedTuple):
    """The start of an event: the variable with its time, and the probe that sets it.

    A mutex may be released by a thread that has not acquired it, so its hold time is a global
    variable.  Many threads can hold a lock for reading, or wait for one, so these times are
    thread-local.
    """

    variable: str
    probe: str
    condition: str = ""


class Event(NamedTuple):
    """A kind of event."""

    title: str
    name: str
    """The name of its aggregations."""
    clock: Clock
    probe: str
    """The probe at its end."""
    condition: str


_MUTEX_HOLD: Final = Clock("mtxhold[arg0]", "mutex-acquire", "arg1 == 0")  # the first acquisition of a recursive one
_RW_HOLD: Final = Clock("self->rwhold[arg0]", "rw-acquire")
_MUTEX_BLOCK: Final = Clock("self->mtxblock[arg0]", "mutex-block")
_MUTEX_SPIN: Final = Clock("self->mtxspin[arg0]", "mutex-spin")
_RW_BLOCK: Final = Clock("self->rwblock[arg0]", "rw-block")
HOLD: Final = (
    Event("Mutex hold", "mtx_hold", _MUTEX_HOLD, "mutex-release", "arg1 == 0"),
    Event("R/W reader hold", "rw_r_hold", _RW_HOLD, "rw-release", "arg1 == 0"),
    Event("R/W writer hold", "rw_w_hold", _RW_HOLD, "rw-release", "arg1 == 1"),
)
CONTENTION: Final = (
    Event("Mutex block", "mtx_block", _MUTEX_BLOCK, "mutex-blocked", "arg1 != 0"),
    Event("Mutex spin", "mtx_spin", _MUTEX_SPIN, "mutex-spun", "arg1 != 0"),
    Event("Mutex unsuccessful spin", "mtx_vain_spin", _MUTEX_SPIN, "mutex-spun", "arg1 == 0"),
    Event("R/W reader block", "rw_r_block", _RW_BLOCK, "rw-blocked", "arg1 == 0 && arg2 != 0"),
    Event("R/W writer block", "rw_w_block", _RW_BLOCK, "rw-blocked", "arg1 == 1 && arg2 != 0"),
)


def program(events: Sequence[Event], *, histogram: bool, seconds: int | None = None) -> str:
    """Return the D program that watches events; with `seconds` it ends by itself."""
    clauses = [] if seconds is None else [*_time_limit(seconds)]
    clauses += (
        _clause(clock.probe, clock.condition, f"{clock.variable} = timestamp;")
        for clock in dict.fromkeys(event.clock for event in events)
    )
    for event in events:
        lasted = f"timestamp - {event.clock.variable}"
        body = (
            (f"@{event.name}[arg0, ustack()] = quantize({lasted});",)
            if histogram
            else (
                f"@{event.name}[arg0, ustack({_CALLER_FRAMES})] = sum({lasted});",
                f"@{event.name}_count[arg0, ustack({_CALLER_FRAMES})] = count();",
            )
        )
        clauses.append(
            _clause(event.probe, f"{event.clock.variable} && {event.condition}", *body, f"{event.name}_found = 1;")
        )
    for clock, probe in dict.fromkeys((event.clock, event.probe) for event in events):
        clauses.append(_clause(probe, clock.variable, f"{clock.variable} = 0;"))
    for event in events:
        shown = f"@{event.name}" if histogram else f"@{event.name}, @{event.name}_count"
        clauses.append(f'END\n/{event.name}_found/\n{{\n\ttrace("{event.title}");\n\tprinta({shown});\n}}\n')
    return "".join(clauses)


def _clause(probe: str, condition: str, *statements: str) -> str:
    predicate = f"/{condition}/\n" if condition else ""
    body = "".join(f"\t{statement}\n" for statement in statements)
    return f"plockstat$target:::{probe}\n{predicate}{{\n{body}}}\n"


def _time_limit(seconds: int) -> Iterator[str]:
    yield f"BEGIN\n{{\n\tend = timestamp + {seconds} * 1000000000;\n}}\n"
    yield "tick-10hz\n/timestamp >= end/\n{\n\texit(0);\n}\n"


@dataclass(frozen=True, slots=True)
class Report:
    """The report of the aggregated data."""

    locate: Callable[[int], Location | None]
    """Names an address of the process."""
    histogram: bool = False
    frames: int = _CALLER_FRAMES
    """The number of frames of a stack beside a histogram."""
    entries: int | None = None
    """The number of rows of each table; None: all."""

    def text(self, events: Sequence[Event], elements: Sequence[Element]) -> str:
        """Return the tables of events that have happened."""
        return "".join(line for event in events for line in self._table(event, elements))

    def rows(self, events: Sequence[Event], elements: Sequence[Element]) -> Iterator[dict[str, Any]]:
        """Yield the same as objects for JSON; docs/export.md describes the fields."""
        for event in events:
            counts = {one.keys: one.value for one in elements if one.name == f"{event.name}_count"}
            found = [one for one in elements if one.name == event.name][: self.entries]
            for one in found:
                lock, stack = one.keys
                row: dict[str, Any] = {
                    "event": event.title,
                    "lock": self._name(lock),
                    "caller": self._name(self._caller(stack)),
                }
                if isinstance(one.value, dict):
                    times = {str(int(low)): times for low, times in one.value.items()}
                    row |= {"count": sum(times.values()), "histogram": times}
                    row["stack"] = [self._name(frame.pc) for frame in stack[: self.frames]]
                else:
                    row |= {"count": counts[one.keys], "nsec": one.value}
                yield row

    def _table(self, event: Event, elements: Sequence[Element]) -> Iterator[str]:
        rows = [one for one in elements if one.name == event.name]
        counts = {one.keys: one.value for one in elements if one.name == f"{event.name}_count"}
        if not rows:
            return
        yield f"\n{event.title}\n\n"
        if not self.histogram:
            yield f"{'Count':>5} {'nsec':>8} {'Lock':<28} Caller\n{_BAR}\n"
        for row in rows[: self.entries]:
            count: Any
            total: int
            if isinstance(row.value, dict):
                yield f"{_BAR}\n{'Count':>5} {'nsec':>8} {'Lock':<28} Caller\n"
                count = sum(row.value.values())
                # A bucket is shown as its highest value.
                total = sum(_next_power(low) * times for low, times in row.value.items())
            else:
                count, total = counts[row.keys], row.value
            yield self._row(count, total, *row.keys)
            if isinstance(row.value, dict):
                yield from self._histogram(row.value, count, row.keys[1])

    def _row(self, count: Any, total: int, lock: int, stack: Sequence[Any]) -> str:
        return f"{count:>5} {total // count:>8} {self._name(lock):<28} {self._name(self._caller(stack))}\n"

    def _caller(self, stack: Sequence[Any]) -> int:
        """Return the first pc outside of the threads library; the innermost, if there is none."""
        for frame in stack[:_CALLER_FRAMES]:
            location = self.locate(frame.pc)
            if location is None or not _base(location.module).startswith(THREADS_LIBRARY):
                return int(frame.pc)
        return int(stack[0].pc) if stack else 0

    def _name(self, address: int) -> str:
        location = self.locate(address)
        if location is None or not location.symbol:
            return f"{address:#x}"
        return f"{_base(location.module)}`{location.symbol}" + (f"+{location.offset:#x}" if location.offset else "")

    def _histogram(self, buckets: dict[float, int], count: int, stack: Sequence[Any]) -> Iterator[str]:
        yield f"\n{'nsec':>10} ---- Time Distribution --- {'count':>5} Stack\n"
        powers = [_next_power(low) for low in buckets]
        low, high = min(powers), max(powers)
        times = dict(zip(powers, buckets.values(), strict=True))
        frames = [self._name(frame.pc) for frame in stack[: self.frames]]
        number = 0
        while low <= high or number < len(frames):
            name = frames[number] if number < len(frames) else ""
            if low <= high:
                bar = "@" * int(_WIDEST * times.get(low, 0) / count)
                yield f"{low:>10} |{bar:<{_WIDEST}}| {times.get(low, 0):>5} {name}\n"
                low *= 2
            else:
                yield f"{'':>43} {name}\n"
            number += 1


def _next_power(low: float) -> int:
    """Return the power of two that plockstat shows for a bucket: the end of its range.

    The bucket of 0 is shown as 1.
    """
    return max(1, 2 * int(low))


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]
