"""The table: what a hit of each mechanism costs on each ISA.

Programs run on the Linux guest, where every exception that a probe causes is counted.  The kernel's
probes fire in the kernel guest, whose own vector takes the breakpoints: the instructions of trap
entry, dispatch, handler, displaced instruction and return are counted as a CPU executes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from emu.displaced import Code, Treatment
from emu.elf import Image
from emu.guest.kernel import images
from emu.guest.linux.inodes import RegularFile
from emu.isa import Isa
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from trapline.consumer.tracer import Tracer
from trapline.cost import kernel
from trapline.cost.events import Events, of_treatment
from trapline.lab.user_sites import UserSite, user_sites
from trapline.machine import linux_machine
from trapline.machine.kernel_machine import SDT_GENERATION, NoKernelError

# The program whose probes are measured, and its function; both are part of Trapline.
_PROGRAM: Final = "zoo"
_ARGUMENT: Final = "recursion"
_FUNCTION: Final = "fib"
# Calls of the kernel that are counted.
_CALLS: Final = 200
# Bytes of code that decide about an instruction, before it and from it on.
_BEFORE: Final = 64
_LONGEST: Final = 16


@dataclass(frozen=True, slots=True)
class Row:
    """What one hit costs."""

    isa: str
    mechanism: str
    what: str
    """What is probed."""
    instructions: float
    """Instructions of the guest that a run without the probe does not execute."""
    events: Events
    """What the model has prices for."""
    exceptions: float
    """All exceptions that a run without the probe does not have, as they were counted."""
    hits: int
    """The number of hits that were counted."""


class _Counter:
    """Counts what a Linux guest that runs without machine code does beside its program."""

    def __init__(self, machine: linux_machine.LinuxMachine) -> None:
        self.exceptions = 0
        self.instructions = 0
        engine = machine.guest.engine
        handlers = engine.handlers
        taken, trapped, discount = handlers.on_breakpoint, handlers.on_trap, engine.discount

        def on_breakpoint(address: int) -> int:
            self.exceptions += 1
            return taken(address)

        def on_trap(number: int) -> int:
            self.exceptions += 1
            return trapped(number)

        def left_out(instructions: int) -> None:
            self.instructions += instructions
            discount(instructions)

        handlers.on_breakpoint, handlers.on_trap = on_breakpoint, on_trap
        engine.discount = left_out


class _Program:
    """The program on one ISA."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.image = Image(images.linux(isa, _PROGRAM))
        self.function = self.image.symbol(_FUNCTION).value
        self.fasttrap = fasttrap.PORTS[isa.name]
        self._plain: _Counter | None = None
        self._sites: dict[str, Sequence[UserSite]] = {}

    def machine(self) -> linux_machine.LinuxMachine:
        """Return it, at its entry."""
        words = (str(self.image.path), _ARGUMENT)
        return linux_machine.start(linux_machine.LinuxOptions(words, isa=self.isa, accelerated=False))

    def plain(self) -> _Counter:
        """Run it without probes, once."""
        if self._plain is None:
            machine = self.machine()
            self._plain = _Counter(machine)
            machine.guest.run(None)
        return self._plain

    def code(self, address: int) -> Code:
        """Return an instruction as the providers see it."""
        start = max(self.function, address - _BEFORE)
        return Code(self.image.read(address, _LONGEST), address, self.image.read(start, address - start))

    def sites(self, provider: str) -> Sequence[UserSite]:
        """Return the function's instructions, and how a provider displaces them."""
        if provider not in self._sites:
            self._sites[provider] = user_sites(self.image.path, function=_FUNCTION, provider=provider)
        return self._sites[provider]

    def site(self, provider: str, what: str) -> UserSite | None:
        """Return the function's first instruction behind its entry that is displaced like this."""
        return next((site for site in self.sites(provider) if site.what == what and site.offset), None)

    def row(self, mechanism: str, what: str, counted: _Counter, hits: int, events: Events) -> Row:
        """Return what was measured, for one hit."""
        assert hits, f"{what} on {self.isa.name} has not fired"
        instructions = (counted.instructions - self.plain().instructions) / hits
        exceptions = (counted.exceptions - self.plain().exceptions) / hits
        return Row(self.isa.name, mechanism, what, instructions, events, exceptions, hits)


def _pid(kind: str, program: _Program) -> Row | None:
    """Measure a pid probe: at the entry, a return, or the first instruction that is so displaced."""
    site = program.site("pid", kind)
    named = kind in {"entry", "return"}
    if site is None and not named:
        return None
    name = kind if site is None else f"{site.offset:x}"
    machine = program.machine()
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable(f"pid$target:a.out:{_FUNCTION}:{name} {{ @ = count(); }}")
        tracer.session.go()
        counted = _Counter(machine)
        machine.guest.run(None)
        tracer.session.work()
        hits = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
    places = {"entry": program.function, "return": program.function + _returns(program)}
    place = program.function + site.offset if site else places[kind]
    treatment: Treatment = program.fasttrap.treat(program.code(place), Fidelity.EXACT)
    events = of_treatment(treatment, copies_trap=program.fasttrap.always_steps or kind == "return")
    return program.row("pid", kind if site is None else f"{kind}: {site.text}", counted, hits, events)


def _returns(program: _Program) -> int:
    """Return the offset of the function's first return."""
    return next(site.offset for site in program.sites("pid") if "return" in site.probes)


def _uprobe(kind: str, program: _Program) -> Row | None:
    """Measure a uprobe at the first instruction that is so displaced, or a return probe."""
    returns = kind == "return"
    site = None if returns else program.site("uprobe", kind)
    if site is None and not returns:
        return None
    place = program.function + (site.offset if site else 0)
    machine, hits = program.machine(), 0

    def hit(*_: object) -> None:
        nonlocal hits
        hits += 1

    process = machine.guest.kernel.first
    assert process is not None
    consumer = uprobes.Consumer(ret_handler=hit) if returns else uprobes.Consumer(handler=hit)
    file = machine.guest.objects.of(process)[0].file
    assert isinstance(file, RegularFile)
    uprobes.Uprobes(machine.guest.kernel).register(file, program.image.offset_of(place) or 0, consumer)
    counted = _Counter(machine)
    machine.guest.run(None)
    treatment: Treatment = uprobes.PORTS[program.isa.name].treat(program.code(place), Fidelity.EXACT)
    events = of_treatment(treatment)._replace(returns=int(returns))
    return program.row("uprobe", kind if site is None else f"{kind}: {site.text}", counted, hits, events)


def _kernel(
    mechanism: str, what: str, generation: int, probe: str, isa: Isa, plain: dict[int, kernel.EachCall]
) -> Row | None:
    """Measure a probe of the kernel that fires once for each system call.

    `plain` keeps what a call costs without probes, by SDT's generation.
    """
    try:
        if generation not in plain:
            plain[generation] = kernel.per_call(isa, generation, "", _CALLS, traps=True)
    except NoKernelError:
        return None
    rest = plain[generation]
    probed = kernel.per_call(isa, generation, f"{probe} {{ @ = count(); }}", _CALLS, traps=True)
    assert probed.firings, f"{probe} on {isa.name} has not fired"
    traps = (probed.breakpoints - rest.breakpoints) / probed.firings
    instructions = (probed.instructions - rest.instructions) / probed.firings
    hits = round(probed.firings * _CALLS)
    return Row(isa.name, mechanism, what, instructions, Events(traps=round(traps)), traps, hits)


_PROGRAMS: Final[Sequence[tuple[str, Callable[[_Program], Row | None]]]] = (
    *(("pid", partial(_pid, kind)) for kind in ("entry", "return", "emulated", "out of line")),
    *(("uprobe", partial(_uprobe, kind)) for kind in ("simulated", "single-stepped", "return")),
)
# Mechanism, what, SDT's generation, probe.
_KERNELS: Final[Sequence[tuple[str, str, int, str]]] = (
    ("fbt", "entry", SDT_GENERATION, "fbt::sched_relinquish:entry"),
    ("fbt", "return", SDT_GENERATION, "fbt::sched_relinquish:return"),
    ("sdt", "2005, illumos: LOCK over a nop", 2005, "sched:::surrender"),
    ("sdt", "2013, FreeBSD: the id is tested", 2013, "sched:::surrender"),
    ("sdt", "2018, FreeBSD: a flag, then the id", 2018, "sched:::surrender"),
    ("sdt", "2024, FreeBSD: a nop becomes a jump", SDT_GENERATION, "sched:::surrender"),
    ("syscall", "entry", SDT_GENERATION, "syscall::sched_yield:entry"),
)
# Those whose probes are in a Linux program.
PROGRAM_MECHANISMS: Final = frozenset(name for name, _ in _PROGRAMS)
MECHANISMS: Final = tuple(dict.fromkeys([*(name for name, *_ in _KERNELS), *(name for name, _ in _PROGRAMS)]))


def count_of(isas: Sequence[Isa], wanted: Sequence[str]) -> int:
    """Return how many measurements `measure` makes."""
    names = [name for name, *_ in (*_KERNELS, *_PROGRAMS)]
    return len(isas) * sum(name in wanted for name in names)


def measure(isas: Sequence[Isa], wanted: Sequence[str] = MECHANISMS) -> Iterator[Row | None]:
    """Yield a row for each measurement; None where an ISA does not have the mechanism."""
    for isa in isas:
        plain: dict[int, kernel.EachCall] = {}
        for name, what, generation, probe in _KERNELS:
            if name in wanted:
                yield _kernel(name, what, generation, probe, isa, plain)
        program = _Program(isa)
        for name, run in _PROGRAMS:
            if name in wanted:
                yield run(program)
