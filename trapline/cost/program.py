"""The cost of probes in a program: its hits are counted, and priced by a model.

The program runs once on the Linux guest, with the probes enabled and their hits counted by machine
code.  What becomes of each displaced instruction says what a hit makes a real CPU do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emu.displaced.decision import Emulated, OutOfLine, Refused, Stepped
from emu.support.words import BadAddressError
from providers.fasttrap.records import AFTER, Probe
from trapline.consumer.tracer import Tracer
from trapline.cost.hit_work import Events, of_decision
from trapline.machine import linux_machine

_HOW: Final[dict[type, str]] = {Emulated: "emulated", OutOfLine: "out of line", Stepped: "single-stepped"}


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of one probe."""

    probe: str
    """provider:module:function:name."""
    hits: int
    events: Events
    """The events of one hit."""
    how: str
    """The decision of the displaced instruction."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The result of a run of a program with probes."""

    isa: str
    instructions: int
    """The number of instructions of the program itself."""
    hits: tuple[Hits, ...]
    """The hits of each probe that fired; the most frequent probe comes first."""
    probes: int
    """The number of enabled probes."""


def profile(options: linux_machine.LinuxOptions, probes: Sequence[str]) -> Profile:
    """Run a program with probes, descriptions as those of `dtrace -n`.

    Raises `emu.guest.base.GuestError`, `trapline.d.errors.CompileError` and
    `trapline.consumer.errors.ConsumerError`.
    """
    machine = linux_machine.start(options)
    start = machine.guest.now()
    with Tracer(
        machine.guest,
        machine.dtrace,
        {"aggsize": "64m"},
        target=machine.target,
        provide=machine.probes.provide,
    ) as tracer:
        enabled = tracer.enable(f"{', '.join(probes)} {{ @[id] = count(); }}")
        # Now: the code of a process is gone when it has ended.
        priced = {probe.id: _priced(machine, probe.arg) for probe in machine.dtrace.table}
        tracer.run()
        counts = {element.keys[0]: element.value for element in tracer.aggregations()}
    found = [
        _hits(machine, number, hits, priced.get(number))
        for number, hits in counts.items()
        if isinstance(hits, int) and hits
    ]
    found.sort(key=lambda each: (-each.hits, each.probe))
    return Profile(machine.guest.isa.name, machine.guest.now() - start, tuple(found), enabled)


def _priced(machine: linux_machine.LinuxMachine, probe: object) -> tuple[Events, str] | None:
    """Return the events of a hit, and the decision of the instruction; None: no displacement."""
    if not isinstance(probe, Probe) or not probe.enabled:
        return None
    fasttrap = machine.probes.fasttrap
    try:
        decision = fasttrap.points.look(probe.target, probe.addresses[0], probe.function)
    except BadAddressError:
        return None
    if isinstance(decision, Refused):
        return None
    copies_trap = fasttrap.port.always_steps or probe.type in AFTER
    return of_decision(decision, copies_trap=copies_trap), _HOW[type(decision)]


def _hits(machine: linux_machine.LinuxMachine, number: int, hits: int, priced: tuple[Events, str] | None) -> Hits:
    probe = machine.dtrace.table.get(number)
    assert probe is not None
    name = f"{probe.provider.name}:{probe.module}:{probe.function}:{probe.name}"
    if priced is None:
        return Hits(name, hits, Events(), "no breakpoint is known")
    return Hits(name, hits, *priced)
