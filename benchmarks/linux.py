"""The cost of a hit in a Linux program, by mechanism.

A loop that calls a function of three instructions runs plain, and with one of its instructions
probed; the handlers only count.  The time of a hit is given relative to an empty callback of bare
Unicorn for a trap, in Python and in machine code, measured in the same run; the guest's
instructions of a hit are those that are executed beside the program's own: the breakpoint, the way
back from the copy, the trap at its end.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import unicorn

from benchmarks.code import ADDITION, CALL, CALLS, NOP, PROGRAM, RETURN, TRAPS
from benchmarks.counting import CountingFramework, Hits
from benchmarks.figures import Cell, Figures, Scale
from benchmarks.firing import ROUNDS, bare, bare_native
from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.guest.linux.guest import LinuxGuest
from emu.isa import Isa
from emu.native import available
from providers.fasttrap import Fasttrap
from providers.fasttrap.records import Probe, ProbeType
from providers.uprobes import Consumer, Uprobes
from trapline.consumer.tracer import Tracer
from trapline.ftrace.definition import parse
from trapline.ftrace.uprobe_events import EventTrace
from trapline.machine import linux_machine

_TURNS = 5
# Virtual nanoseconds of the first hits: a D program becomes machine code among them.
_FIRST = 400_000


class Run(NamedTuple):
    """The measurements of one run, per hit."""

    seconds: float
    """Seconds of this process on its CPU, after the first hits have compiled the code."""
    instructions: float
    """Instructions of the guest that are not the program's; known only if Python serves the hits."""


class Bench:
    """The loop as a program of one ISA: a file in which it replaces another program's main."""

    def __init__(self, isa: Isa, folder: Path) -> None:
        self.isa = isa
        image = Image(images.linux(isa, "zoo"))
        self.main = image.symbol("main").value
        self.offset = image.offset_of(self.main) or 0
        data = bytearray(image.path.read_bytes())
        data[self.offset : self.offset + len(PROGRAM[isa.name])] = PROGRAM[isa.name]
        self.path = folder / f"loop-{isa.name}"
        self.path.write_bytes(data)
        self.path.chmod(0o755)

    def guest(self) -> LinuxGuest:
        """Return a guest that has stopped before the loop."""
        return linux_machine.start_guest(linux_machine.LinuxOptions((str(self.path),), isa=self.isa))

    def plain(self) -> Run:
        """Run without probes."""
        return _run(self.guest())

    def fasttrap(self, at: int, kind: ProbeType, *, native: bool) -> Run:
        """Run with a fasttrap probe."""
        guest, hits = self.guest(), Hits(native=native)
        fasttrap = Fasttrap(guest.kernel, CountingFramework(hits))
        process = guest.kernel.first
        assert process is not None
        probe = Probe(fasttrap.target(process), kind, self.main, len(PROGRAM[self.isa.name]), (self.main + at,))
        fasttrap.enable(probe)
        run = _run(guest)
        assert hits.number == CALLS
        return run

    def uprobe(self, at: int, returns: bool, *, native: bool) -> Run:
        """Run with a uprobe."""
        guest, hits = self.guest(), Hits(native=native)
        if returns:
            consumer = Consumer(ret_handler=hits.hit, ret_runs=hits.runs)
        else:
            consumer = Consumer(handler=hits.hit, runs=hits.runs)
        process = guest.kernel.first
        assert process is not None
        Uprobes(guest.kernel).register(guest.objects.of(process)[0].file, self.offset + at, consumer)
        run = _run(guest)
        assert hits.number == CALLS
        return run

    def event(self, at: int, argument: str, *, native: bool) -> Run:
        """Run with an event of the `uprobe` command."""
        del native
        guest, shown = self.guest(), list[str]()
        trace = EventTrace(guest, shown.append)
        trace.add(parse(f"p:hit {self.path}:{self.offset + at:#x} {argument}", self.isa))
        run = _run(guest)
        trace.finish()
        assert sum(text.count("\n") for text in shown) == trace.count == CALLS
        return run

    def dtrace(self, at: int, action: str, *, native: bool) -> Run:
        """Run with a D program."""
        del native
        machine = linux_machine.start(linux_machine.LinuxOptions((str(self.path),), isa=self.isa))
        with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
            tracer.enable(f"pid$target:a.out:-:{self.main + at:x} {{ {action} }}")
            tracer.session.go()
            run = _run(machine.guest)
            tracer.session.work()
            assert [element.value for element in tracer.aggregations()] == [CALLS]
        return run


MECHANISMS: tuple[tuple[str, Callable[..., Run], dict[str, int], object], ...] = (
    ("pid, emulated: a nop, as of a USDT marker", Bench.fasttrap, NOP, ProbeType.OFFSETS),
    ("pid, emulated: a call", Bench.fasttrap, CALL, ProbeType.OFFSETS),
    ("pid, out of line: an addition", Bench.fasttrap, ADDITION, ProbeType.OFFSETS),
    ("pid, return", Bench.fasttrap, RETURN, ProbeType.RETURN),
    ("uprobe: a nop", Bench.uprobe, NOP, False),
    ("uprobe, stepped: an addition", Bench.uprobe, ADDITION, False),
    ("uprobe, return", Bench.uprobe, NOP, True),
    ("pid, emulated: a nop; @ = count();", Bench.dtrace, NOP, "@ = count();"),
    ("uprobe: a nop; its line, with a stack word", Bench.event, NOP, "$stack0"),
)


def _run(guest: LinuxGuest) -> Run:
    """Run to the end."""
    engine = guest.engine
    discount = engine.discount
    left_out = 0

    def note(instructions: int, executed: int = 0) -> None:
        nonlocal left_out
        left_out += instructions
        discount(instructions, executed)

    engine.discount = note  # type: ignore[method-assign]
    start = guest.now()
    guest.run(start + _FIRST)
    middle, seconds = guest.now(), time.process_time()
    guest.run(None)
    seconds = time.process_time() - seconds
    rest = (guest.now() - middle) / (guest.now() - start)
    return Run(seconds / (CALLS * rest), left_out / CALLS)


def _seconds(action: Callable[[], object]) -> float:
    """Return the time of this process on its CPU during a call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure all mechanisms on some ISAs."""
    rows: list[tuple[Cell, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for isa in isas:
            rows += _rows(Bench(isa, Path(folder)), scale)
    return Figures(
        "A hit in a Linux program, by mechanism",
        ("ISA", "what", "guest instructions a hit", "ns a hit", "times an empty trap callback", "an empty native one"),
        rows,
        f"{CALLS:,} hits with handlers that count, in machine code from the second hit on; then a D program and an "
        "event of the uprobe command, which become machine code at hit 1,000. Process time of the last two thirds of a "
        "run, least of several, beyond a run without probes. The goals: 150 ns out of line, 400 for a stepped uprobe, "
        "300 for a return uprobe.",
    )


def _rows(bench: Bench, scale: Scale) -> list[tuple[Cell, ...]]:
    rounds, isa = scale.rounds(ROUNDS), bench.isa
    runs = {name: partial(run, bench, places[isa.name], how) for name, run, places, how in MECHANISMS}
    # Python is called for each instruction that is not the program's; machine code only subtracts it.
    instructions = {name: run(native=False).instructions for name, run in runs.items()}
    code = TRAPS[isa.name]
    traps = {"": bare(isa, code, rounds, unicorn.UC_HOOK_INTR)}
    if available():
        traps["native"] = bare_native(isa, code, rounds)
    plain, best = float("inf"), dict.fromkeys(runs, float("inf"))
    empty = dict.fromkeys(traps, float("inf"))
    for _ in range(scale.turns(_TURNS)):
        plain = min(plain, bench.plain().seconds)
        for name, run in runs.items():
            best[name] = min(best[name], run(native=True).seconds)
        empty = {trap: min(empty[trap], _seconds(loop) / rounds) for trap, loop in traps.items()}
    rows: list[tuple[Cell, ...]] = []
    for name, extra in instructions.items():
        each = best[name] - plain
        beside: list[Cell] = [each / empty[trap] if trap in empty else "" for trap in ("", "native")]
        rows.append((isa.title, name, round(extra, 2), round(each * 1e9), *beside))
    return rows
