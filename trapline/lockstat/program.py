"""The D program that gathers lockstat's data.

Source: FreeBSD lockstat.c (dprog_addevent).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trapline.lockstat.events import EVENTS, Event, Kind

AVERAGE: Final = 1
# Numbers of the aggregation variables, in the order of their names in the program.
HISTOGRAM: Final = 2
# The idle thread, and all others (testbins/kernel/sys/proc.h, TDF_IDLETD): the teaching kernel has no classes.
_PRIORITY_CLASS: Final = "(curthread->td_flags & 0x40 ? 4 : 3)"
# The pseudo address of an interrupt's lock: the CPU's number in the upper bits, this, and a class.
CPU_BASE: Final = 0x0100_0000


@dataclass(frozen=True, slots=True)
class Gathering:
    """The data to gather for each event."""

    histogram: bool = False
    stack: int = 0
    """Frames of stack traces; 0: none."""
    trace: bool = False
    """Whether each event is recorded by itself, rather than all of them together."""
    duration: int = 0
    """Events that are shorter are omitted; nanoseconds."""
    rate: int = 97
    """Profiling interrupts a second."""
    lock_filter: str = ""
    interrupt_filter: str = ""


def program(numbers: Iterable[int], gathering: Gathering) -> str:
    """Return the program for the events of these numbers."""
    events = [EVENTS[number] for number in sorted(numbers) if number in EVENTS and EVENTS[number].probe]
    return "".join(_clauses(event, gathering) for event in events)


def _clauses(event: Event, gathering: Gathering) -> str:
    """Return the clauses of one event: its beginning, if that has a probe, and its end."""
    begun = f"self->ev{event.number}[(uintptr_t)arg0]"
    duration, lock, caller = "arg1", "(uintptr_t)arg0", "caller"
    if event.kind is Kind.INTERRUPT:
        duration, caller = "arg2", "(uintptr_t)arg0"
        lock = f"(uintptr_t)(cpu << 16) +\n\t    {CPU_BASE:#x} + {_PRIORITY_CLASS}"
        conditions = [event.predicate, gathering.interrupt_filter]
    elif event.acquire:
        conditions = [begun]
        duration = f"timestamp -\n\t    {begun}" if event.kind is Kind.HOLD else begun
    else:
        conditions = [event.predicate, gathering.lock_filter]
    if gathering.duration and event.kind is not Kind.ERROR:
        conditions.append(f"{duration} >= {gathering.duration:#x}")
    body = _record(event.number, lock, caller, duration, gathering)
    if event.acquire:
        body += f"\t{begun} = 0;\n"
    text = _clause(event.probe.format(rate=gathering.rate), conditions, body)
    return _beginning(event, begun, gathering) + text


def _beginning(event: Event, begun: str, gathering: Gathering) -> str:
    """Return the clauses that record the start of an event."""
    if not event.acquire:
        return ""
    conditions = [event.predicate, gathering.lock_filter]
    if event.kind is Kind.HOLD:
        return _clause(event.acquire, conditions, f"\t{begun} = timestamp;\n")
    # The variable counts the entries of the lock that were not left yet.
    entered = _clause(event.acquire, conditions, f"\t{begun}++;\n")
    return entered + _clause(event.probe, [begun], f"\t{begun}--;\n")


def _record(number: int, lock: str, caller: str, duration: str, gathering: Gathering) -> str:
    """Return the statements that record an event."""
    if gathering.trace:
        stack = f"\tstack({gathering.stack});\n" if gathering.stack else ""
        return f"\ttrace({number}ULL);\n\ttrace({lock});\n\ttrace({caller});\n{stack}"
    keys = f"{number}ULL, {lock}, {caller}" + (f", stack({gathering.stack})" if gathering.stack else "")
    text = f"\t@avg[{keys}] = avg({duration});\n"
    return text + (f"\t@hist[{keys}] = quantize({duration});\n" if gathering.histogram else "")


def _clause(probe: str, conditions: Iterable[str], body: str) -> str:
    wanted = [condition for condition in conditions if condition]
    predicate = f"/{' && '.join(f'({one})' for one in wanted)}/\n" if wanted else ""
    return f"{probe}\n{predicate}{{\n{body}}}\n\n"
