"""The cost of a thing as the difference between runs with it and without it, which take turns.

Each turn gives one difference of this process's CPU time, so that a machine that is slower for a
while has the same effect on both sides.  The result is the median of the differences with their
quartiles; it does not count if the quartiles are further apart than it is from zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from statistics import quantiles
from typing import Final, NamedTuple, Self

from benchmarks.figures import Cell, Scale
from emu.isa import ISAS, Isa
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelMachine

TURNS: Final = 31
NOISE: Final = "not measured: noise"
# Virtual nanoseconds: of one turn, and before the first one, when clauses are compiled and code is translated.
_SLICE: Final = 400_000_000
_WARM: Final = 200_000_000


class Spread(NamedTuple):
    """The quartiles of some measurements."""

    first: float
    median: float
    third: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Self:
        """Return the quartiles of some measurements, at least one."""
        return cls(*quantiles(samples if len(samples) > 1 else 2 * list(samples), n=4, method="inclusive"))

    @property
    def noise(self) -> bool:
        """Whether the quartiles are further apart than the median is above zero."""
        return self.median <= 0 or self.third - self.first > self.median

    def cell(self) -> Cell:
        """Return the rounded median, or that it is noise."""
        return NOISE if self.noise else round(self.median)

    def over(self, other: Spread) -> Cell:
        """Return the median as a multiple of another one; "" if one of them is noise."""
        return "" if self.noise or other.noise else self.median / other.median

    def quartiles(self) -> str:
        """Return the first and the third quartile, rounded."""
        return f"{self.first:.0f} to {self.third:.0f}"


Measurement = Callable[[Isa, Scale], list[list[Cell]]]


def apart(rows: Measurement, isas: Sequence[Isa], scale: Scale) -> list[list[Cell]]:
    """Return the rows of all ISAs, each of which is measured in a process of its own.

    The code that a process translates later is further from the CPU emulator's library, and calls
    it by longer instructions: the ISAs that come last would seem slower.  `rows` is a function of a
    module.
    """
    if scale.smallest:
        return [row for isa in isas for row in rows(isa, scale)]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        parts = [pool.submit(_rows_of, rows, isa.name, scale) for isa in isas]
        return [row for part in parts for row in part.result()]


def _rows_of(rows: Measurement, name: str, scale: Scale) -> list[list[Cell]]:
    return rows(ISAS[name], scale)


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the CPU seconds that this process needs for a call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def beyond(base: Callable[[], object], actions: Mapping[str, Callable[[], object]], turns: int) -> dict[str, Spread]:
    """Return the CPU nanoseconds that each action needs beyond a base; the base runs before each."""
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(turns):
        for name, action in actions.items():
            less = cpu_seconds(base)
            samples[name].append(1e9 * (cpu_seconds(action) - less))
    return {name: Spread.of(found) for name, found in samples.items()}


class Firing(NamedTuple):
    """What one firing adds to a kernel guest."""

    nanoseconds: Spread
    """CPU time of this process."""
    instructions: float
    """Instructions that the guest executes more."""
    without: Spread
    """The nanoseconds without those instructions, at the speed of the machine that is compared."""
    share: float
    """The time of the whole machine in which it fires, as a multiple of that of the other one."""


class _Slice(NamedTuple):
    seconds: float
    instructions: int


def firing(make: Callable[[], KernelMachine], other: str, program: str, scale: Scale) -> Firing:
    """Compare two equal machines, one with a program whose counts are its firings.

    `other` is the program of the other machine ("": none).  Virtual time does not pass in what a
    probe adds, so that in equal slices of it both machines do the same work.  Neither is the first
    machine: the code that Unicorn translates for the first one of a process is near its library, is
    shorter for that reason, and takes up to a fifth less time.
    """
    turns = scale.turns(TURNS)
    with ExitStack() as closing:
        first = make()
        plain, traced = (_Machine(closing, make(), text, scale) for text in (other, program))
        before = traced.counted()
        pairs = [(next(plain.slices), next(traced.slices)) for _ in range(turns)]
        firings = max(1.0, (traced.counted() - before) / turns)
        del first
    more = [(mine.seconds - base.seconds, mine.instructions - base.instructions, base) for base, mine in pairs]
    return Firing(
        Spread.of([1e9 * seconds / firings for seconds, _, _ in more]),
        sum(instructions for _, instructions, _ in more) / turns / firings,
        Spread.of(
            [
                1e9 * (seconds - instructions * base.seconds / base.instructions) / firings
                for seconds, instructions, base in more
            ]
        ),
        Spread.of([mine.seconds / base.seconds for base, mine in pairs]).median,
    )


class _Machine:
    """A machine that runs one slice of virtual time after the other."""

    def __init__(self, closing: ExitStack, machine: KernelMachine, program: str, scale: Scale) -> None:
        self._guest = machine.guest
        options: Mapping[str, str | None] = {"bufsize": "16m", "aggsize": "16m", "aggrate": "1us", "zdefs": None}
        self._tracer = closing.enter_context(
            Tracer(machine.guest, machine.dtrace, options, provide=machine.probes.provide)
        )
        if program:
            self._tracer.enable(program)
            self._tracer.session.go()
        machine.guest.run(machine.guest.now() + scale.rounds(_WARM))
        self.slices = self._slices(scale.rounds(_SLICE))

    def counted(self) -> int:
        """Return the sum of the aggregations so far."""
        self._tracer.session.work()
        return sum(element.value for element in self._tracer.aggregations() if isinstance(element.value, int))

    def _slices(self, length: int) -> Iterator[_Slice]:
        guest, deadline = self._guest, self._guest.now()
        while True:
            before, deadline = guest.engine.instructions, deadline + length
            seconds = cpu_seconds(lambda until=deadline: guest.run(until))
            yield _Slice(seconds, guest.engine.instructions - before)
