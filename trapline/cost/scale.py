"""The cost of probes against their number: probes, sites on the way, threads, consumers.

A program makes the same system call again and again.  The cost of a call is what it executes beside
a run without probes: instructions of the guest, whose own vector takes the breakpoints, and the
time that this emulator takes for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS, Isa
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest
from trapline.support.workers import each_isa

_FUNCTION: Final = "sched_relinquish"
_CLAUSE: Final = "{ @ = count(); }"
_CALLS: Final = 300
# Time is measured so often; the shortest one counts.
_TURNS: Final = 2
_OPTIONS: Final = {"bufsize": "1m", "aggsize": "1m"}


class Point(NamedTuple):
    """The cost of one call of the program."""

    number: int
    instructions: float
    """The number of the guest's instructions that a call without probes does not execute."""
    nanoseconds: float
    """The emulator's CPU time for the call, without that of a call without probes."""


class Curve(NamedTuple):
    """The cost of a call against one number, on one ISA."""

    isa: str
    axis: str
    points: tuple[Point, ...]


class _Run(NamedTuple):
    instructions: int
    seconds: float


def _machine(isa: Isa, threads: int) -> KernelMachine:
    """Return a machine whose threads together make the calls."""
    command = " & ".join([f"spin -y {_CALLS // threads}"] * threads)
    return boot(kernel_guest(KernelOptions(isa=isa, trap_path=TrapPath.GUEST, command=command)))


def _run(isa: Isa, programs: Sequence[str], threads: int = 1) -> _Run:
    """Run with one consumer for each program."""
    machine = _machine(isa, threads)
    engine = machine.guest.engine
    with ExitStack() as stack:
        for program in programs:
            tracer = stack.enter_context(Tracer(machine.guest, machine.dtrace, _OPTIONS))
            tracer.enable(program)
            tracer.session.go()
        before, start = engine.instructions, time.process_time()
        machine.guest.run(None)
        return _Run(engine.instructions - before, time.process_time() - start)


def _fired(isa: Isa) -> dict[str, int]:
    """Return the functions that FBT probes and that a run enters, with the number of entries."""
    machine = _machine(isa, 1)
    with Tracer(machine.guest, machine.dtrace, _OPTIONS) as tracer:
        tracer.enable("fbt:::entry { @[probefunc] = count(); }")
        tracer.run()
        found = ((element.keys[0], element.value) for element in tracer.aggregations())
        return {str(name): count for name, count in found if isinstance(count, int)}


def _functions(isa: Isa) -> list[str]:
    """Return the functions that each call runs, that of the call itself first."""
    each_call = [name for name, count in _fired(isa).items() if count >= _CALLS]
    return sorted(each_call, key=lambda name: (name != _FUNCTION, name))


def _others(isa: Isa) -> list[str]:
    """Return functions that FBT probes and that a run does not enter."""
    machine, passed = _machine(isa, 1), _fired(isa)
    probes = (probe for probe in machine.dtrace.table if (probe.provider.name, probe.name) == ("fbt", "entry"))
    return sorted({probe.function for probe in probes} - {*passed})


def _entries(functions: Sequence[str]) -> str:
    return f"{', '.join(f'fbt::{name}:entry' for name in functions)} {_CLAUSE}"


def _probes(isa: Isa) -> Iterator[tuple[int, Sequence[str], int]]:
    others = _others(isa)
    for number in (1, 10, 100, 300):
        if number <= len(others):
            yield number, [_entries([_FUNCTION, *others[: number - 1]])], 1


def _sites(isa: Isa) -> Iterator[tuple[int, Sequence[str], int]]:
    functions = _functions(isa)
    for number in (1, 2, 4, 8, 16):
        if number <= len(functions):
            yield number, [_entries(functions[:number])], 1


def _threads(_isa: Isa) -> Iterator[tuple[int, Sequence[str], int]]:
    for number in (1, 2, 4):
        yield number, [_entries([_FUNCTION])], number


def _consumers(_isa: Isa) -> Iterator[tuple[int, Sequence[str], int]]:
    for number in (1, 2, 4, 8):
        yield number, [_entries([_FUNCTION])] * number, 1


_AXES: Final[Mapping[str, Callable[[Isa], Iterator[tuple[int, Sequence[str], int]]]]] = {
    "probes": _probes,
    "sites": _sites,
    "threads": _threads,
    "consumers": _consumers,
}
# The quantity of each axis.
AXES: Final = {
    "probes": "probes enabled, one of which fires",
    "sites": "probes that fire in each call",
    "threads": "processes that share the calls",
    "consumers": "consumers of the same probe",
}


def curves(isa: Isa) -> list[Curve]:
    """Measure one ISA."""
    return [Curve(isa.name, axis, tuple(_points(isa, numbers(isa)))) for axis, numbers in _AXES.items()]


def _points(isa: Isa, numbers: Iterator[tuple[int, Sequence[str], int]]) -> Iterator[Point]:
    plain: dict[int, _Run] = {}
    for number, programs, threads in numbers:
        if threads not in plain:
            plain[threads] = _fastest(isa, (), threads)
        probed = _fastest(isa, programs, threads)
        calls = threads * (_CALLS // threads)
        seconds = max(0.0, probed.seconds - plain[threads].seconds)
        yield Point(number, (probed.instructions - plain[threads].instructions) / calls, 1e9 * seconds / calls)


def _fastest(isa: Isa, programs: Sequence[str], threads: int) -> _Run:
    return min((_run(isa, programs, threads) for _ in range(_TURNS)), key=lambda one: one.seconds)


def _of(name: str) -> list[Curve]:
    return curves(ISAS[name])


def measure_curves(isas: Sequence[Isa], told: Callable[[], object] = lambda: None) -> list[Curve]:
    """Return the curves of all ISAs; `told` is called whenever one is done."""
    return [curve for found in each_isa(_of, isas, told) for curve in found]
