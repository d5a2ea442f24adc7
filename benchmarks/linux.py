"""What a hit costs in a Linux program, by mechanism.

A loop that calls a function of three instructions runs plain, and with one of its instructions
probed; the handlers are empty.  The time of a hit is given relative to an empty Python callback of
bare Unicorn for a trap, measured in the same run; the guest's instructions of a hit are those that
are executed beside the program's own: the breakpoint, the copy's way back, the trap at its end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import unicorn

from benchmarks.code import ADDITION, CALL, CALLS, NOP, PROGRAM, RETURN, TRAPS
from benchmarks.figures import Cell, Figures, Scale, interleaved
from benchmarks.firing import ROUNDS, bare
from emu.elf import Image
from emu.guest.kernel import images
from emu.guest.linux.guest import LinuxGuest
from emu.isa import Isa
from providers.fasttrap import Fasttrap
from providers.fasttrap.records import Probe, ProbeType
from providers.uprobes import Consumer, Uprobes
from trapline.consumer.tracer import Tracer
from trapline.lab.check.listener import Listener
from trapline.machine import linux_machine

_TURNS = 3


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
        """Return a guest that stands before the loop."""
        return linux_machine.start_guest(linux_machine.LinuxOptions((str(self.path),), isa=self.isa))

    def plain(self) -> None:
        """Run without probes."""
        self.guest().run(None)

    def fasttrap(self, at: int, kind: ProbeType) -> float:
        """Run with a fasttrap probe, and return the guest's instructions of a hit."""
        guest = self.guest()
        framework = Listener()
        fasttrap = Fasttrap(guest.kernel, framework)
        process = guest.kernel.first
        assert process is not None
        probe = Probe(fasttrap.target(process), kind, self.main, len(PROGRAM[self.isa.name]), (self.main + at,))
        fasttrap.enable(probe)
        instructions = _run(guest)
        assert framework.fired == CALLS
        return instructions

    def uprobe(self, at: int, returns: bool) -> float:
        """Run with a uprobe, and return the guest's instructions of a hit."""
        guest = self.guest()
        hits = [0]

        def hit(*_: object) -> None:
            hits[0] += 1

        consumer = Consumer(ret_handler=hit) if returns else Consumer(handler=hit)
        process = guest.kernel.first
        assert process is not None
        Uprobes(guest.kernel).register(guest.objects.of(process)[0].file, self.offset + at, consumer)
        instructions = _run(guest)
        assert hits[0] == CALLS
        return instructions

    def dtrace(self, at: int, action: str) -> float:
        """Run with a D program, and return the guest's instructions of a hit."""
        machine = linux_machine.start(linux_machine.LinuxOptions((str(self.path),), isa=self.isa))
        with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
            tracer.enable(f"pid$target:a.out:-:{self.main + at:x} {{ {action} }}")
            tracer.session.go()
            instructions = _run(machine.guest)
            tracer.session.work()
            assert [element.value for element in tracer.aggregations()] == [CALLS]
        return instructions


MECHANISMS: tuple[tuple[str, Callable[..., float], dict[str, int], object], ...] = (
    ("pid, emulated: a nop, as of a USDT marker", Bench.fasttrap, NOP, ProbeType.OFFSETS),
    ("pid, emulated: a call", Bench.fasttrap, CALL, ProbeType.OFFSETS),
    ("pid, out of line: an addition", Bench.fasttrap, ADDITION, ProbeType.OFFSETS),
    ("pid, return", Bench.fasttrap, RETURN, ProbeType.RETURN),
    ("uprobe: a nop", Bench.uprobe, NOP, False),
    ("uprobe, stepped: an addition", Bench.uprobe, ADDITION, False),
    ("uprobe, return", Bench.uprobe, NOP, True),
    ("pid, emulated: a nop; @ = count();", Bench.dtrace, NOP, "@ = count();"),
)


def _run(guest: LinuxGuest) -> float:
    """Run to the end, and return the uncounted instructions that a hit executes."""
    engine = guest.engine
    discount = engine.discount
    left_out = 0

    def note(instructions: int) -> None:
        nonlocal left_out
        left_out += instructions
        discount(instructions)

    engine.discount = note  # type: ignore[method-assign]
    guest.run(None)
    return left_out / CALLS


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure all mechanisms on some ISAs."""
    rows: list[tuple[Cell, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for isa in isas:
            rows += _rows(Bench(isa, Path(folder)), scale)
    return Figures(
        "A hit in a Linux program, by mechanism",
        ("ISA", "what", "guest instructions a hit", "µs a hit", "times an empty trap callback"),
        rows,
        f"{CALLS:,} hits with empty handlers; the last row of each ISA is a D program. One run, in turns.",
    )


def _rows(bench: Bench, scale: Scale) -> list[tuple[Cell, ...]]:
    instructions: dict[str, float] = {}
    rounds = scale.rounds(ROUNDS)

    def measured(name: str, run: Callable[..., float], places: dict[str, int], how: object) -> Callable[[], None]:
        def once() -> None:
            instructions[name] = run(bench, places[bench.isa.name], how)

        return once

    times = interleaved(
        {
            "trap": bare(bench.isa, TRAPS[bench.isa.name], rounds, unicorn.UC_HOOK_INTR),
            "plain": bench.plain,
            **{row[0]: measured(*row) for row in MECHANISMS},
        },
        scale.turns(_TURNS),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, extra in instructions.items():
        each = (times[name] - times["plain"]) / CALLS
        rows.append((bench.isa.title, name, round(extra, 2), each * 1e6, each / (times["trap"] / rounds)))
    return rows
