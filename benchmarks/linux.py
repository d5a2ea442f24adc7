"""What a probe in a Linux program costs, by mechanism, and how fast the guest is without any.

One program (`zoo cxx`: C++ with exceptions and containers) runs plain, with every function's entry probed by the pid
provider, and by uprobes with and without returns.  The time of a hit is given relative to an empty Python callback of
bare Unicorn for a trap, measured in the same run; the guest's speed relative to qemu-user, where that is installed.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable

import unicorn

from benchmarks.code import TRAPS
from benchmarks.figures import Cell, Figures
from benchmarks.firing import ROUNDS, bare
from emu.guest.kernel import images
from emu.isa import ISAS, Isa
from providers.uprobes import Consumer, UprobeError, Uprobes
from trapline import linux_machine
from trapline.consumer.tracer import Tracer

CASE = "cxx"
_REPEATS = 3


def _start(isa: Isa) -> linux_machine.LinuxMachine:
    return linux_machine.start(linux_machine.LinuxOptions((str(images.linux(isa, "zoo")), CASE), isa=isa))


def _timed(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def plain(isa: Isa) -> tuple[float, int]:
    """Return the seconds of a run without probes, and its instructions."""
    machine = _start(isa)
    before = machine.guest.engine.instructions
    seconds = _timed(lambda: machine.guest.run(None))
    return seconds, machine.guest.engine.instructions - before


def pid(isa: Isa) -> tuple[float, int]:
    """Return the seconds of a run with an aggregation at every entry, and the hits."""
    machine = _start(isa)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.provide) as tracer:
        tracer.enable("pid$target:::entry { @ = count(); }")
        seconds = _timed(tracer.run)
        return seconds, int(sum(element.value for element in tracer.aggregations()))  # type: ignore[misc]


def uprobe(isa: Isa, *, returns: bool) -> tuple[float, int]:
    """Return the seconds of a run with a uprobe at every entry, and the hits."""
    machine = _start(isa)
    uprobes = Uprobes(machine.guest.kernel)
    loaded = machine.guest.objects.of(machine.guest.kernel.first)[0]  # type: ignore[arg-type]
    hits = [0]

    def hit(*_: object) -> None:
        hits[0] += 1

    for symbol in machine.guest.objects.functions(loaded):
        if "jmp" in symbol.name:
            continue  # a return probe there breaks setjmp, on Linux too
        with contextlib.suppress(UprobeError):
            consumer = Consumer(ret_handler=hit) if returns else Consumer(handler=hit)
            uprobes.register(loaded.file, loaded.image.offset_of(symbol.value) or 0, consumer)
    return _timed(lambda: machine.guest.run(None)), hits[0]


def qemu(isa: Isa) -> float | None:
    """Return the seconds of a run under qemu-user, its start included; None where it is not installed."""
    command = shutil.which(f"qemu-{isa.name}")
    if command is None:
        return None
    words = [command, str(images.linux(isa, "zoo")), CASE]
    return _timed(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=False))


def _best(measure: Callable[[], tuple[float, int]]) -> tuple[float, int]:
    return min(measure() for _ in range(_REPEATS))


def measure() -> Figures:
    """Measure all mechanisms on all ISAs."""
    rows: list[tuple[Cell, ...]] = []
    for isa in ISAS.values():
        trap = bare(isa, TRAPS[isa.name], unicorn.UC_HOOK_INTR)
        empty = min(_timed(trap) for _ in range(_REPEATS)) / ROUNDS
        seconds, instructions = _best(lambda isa=isa: plain(isa))
        outside = min((found for _ in range(_REPEATS) if (found := qemu(isa)) is not None), default=None)
        speed = f"{instructions / seconds / 1e6:.0f} MIPS"
        beside = "" if outside is None else f"; qemu-user, start included: {seconds / outside:.1f} times as long"
        rows.append((isa.name, f"no probe: {speed}{beside}", 0, 0.0, 0.0))
        mechanisms = {
            "pid entry, count()": lambda isa=isa: pid(isa),
            "uprobe, empty handler": lambda isa=isa: uprobe(isa, returns=False),
            "return uprobe, empty handler": lambda isa=isa: uprobe(isa, returns=True),
        }
        for name, run in mechanisms.items():
            taken, hits = _best(run)
            each = (taken - seconds) / max(1, hits)
            rows.append((isa.name, name, hits, each * 1e6, each / empty))
    return Figures(
        "Probes in a Linux program",
        ("ISA", "what", "hits", "µs a hit", "times an empty trap callback"),
        rows,
        "one program, one run; the guest without probes counts its instructions all the time",
        text_columns=frozenset({"ISA", "what"}),
    )
