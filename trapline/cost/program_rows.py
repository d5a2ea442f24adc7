"""The probes of programs: pid, uprobe and USDT on the Linux guest, where exceptions are counted.

The kernel of that guest is the emulator, so the instructions are those of user code: copies out of
line, and what leads back from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from emu.displaced.decision import Code
from emu.elf.image import Image
from emu.elf.stapsdt import Marker, markers
from emu.guest.kernel.boot import images
from emu.guest.linux.fs.regular import RegularFile
from emu.isa import Isa
from providers import fasttrap, uprobes
from providers.fasttrap.usdt import probe_name
from providers.fidelity import Fidelity
from providers.sequences import REACH
from trapline.consumer.tracer import Tracer
from trapline.cost.anatomy import anatomy
from trapline.cost.hit_work import Events, Observer, of_decision
from trapline.cost.rows import Anatomy, Idle, Row
from trapline.lab.sites.instructions import UserSite, user_sites
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.run import record
from trapline.machine import linux_machine
from trapline.support.own_files import OWN

# The program whose probes are measured, its function, and its markers; all are part of Trapline.
_PROGRAM: Final = "zoo"
_RECURSION: Final = "recursion"
_FUNCTION: Final = "fib"
_MARKERS: Final = "markers"
_MARKER: Final = "none"
_GUARDED: Final = "idle"
# Bytes that the longest instruction has at most.
_LONGEST: Final = 16
_COUNTED: Final = "{ @ = count(); }"
_RECORDED: Final = "{ @[arg0] = count(); }"


class _Hits(NamedTuple):
    """The counts of a run with a probe."""

    counted: Observer
    number: int
    program: int
    """The number of instructions of the program itself."""


def _run(machine: linux_machine.LinuxMachine) -> tuple[Observer, int]:
    """Run to the end; return what was counted, and the number of the program's own instructions.

    That number depends on the program's semaphores.
    """
    counted, start = Observer(machine.guest.engine), machine.guest.now()
    machine.guest.run(None)
    return counted, machine.guest.now() - start


class ProgramLab:
    """The program on one ISA."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.image = Image(images.linux(isa, _PROGRAM))
        self.function = self.image.symbol(_FUNCTION).value
        self.fasttrap = fasttrap.PORTS[isa.name]
        self.uprobes = uprobes.PORTS[isa.name]
        self._plain: dict[str, _Hits] = {}
        self._sites: dict[str, Sequence[UserSite]] = {}

    def _machine(self, argument: str) -> linux_machine.LinuxMachine:
        """Return the machine, with the program at its entry."""
        words = (str(self.image.path), argument)
        return linux_machine.start(linux_machine.LinuxOptions(words, isa=self.isa, accelerated=False))

    def _without(self, argument: str) -> _Hits:
        """Return the counts of a run without probes, which is made once."""
        if argument not in self._plain:
            machine = self._machine(argument)
            counted, program = _run(machine)
            self._plain[argument] = _Hits(counted, 0, program)
        return self._plain[argument]

    def _traced(self, argument: str, probe: str) -> _Hits:
        """Return the counts of a run with a probe of a D program."""
        machine = self._machine(argument)
        with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
            tracer.enable(f"{probe} {_COUNTED}")
            tracer.session.go()
            counted, program = _run(machine)
            tracer.session.work()
            hits = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
        return _Hits(counted, hits, program)

    def _probed(self, argument: str, address: int, *, returns: bool = False, semaphore: int = 0) -> _Hits:
        """Return the counts of a run with a uprobe."""
        machine, hits = self._machine(argument), 0

        def hit(*_: object) -> None:
            nonlocal hits
            hits += 1

        process = machine.guest.kernel.first
        assert process is not None
        consumer = uprobes.Consumer(ret_handler=hit) if returns else uprobes.Consumer(handler=hit)
        file = machine.guest.objects.of(process)[0].file
        assert isinstance(file, RegularFile)
        guard = self.image.offset_of(semaphore) or 0 if semaphore else 0
        uprobes.Uprobes(machine.guest.kernel).register(file, self._offset(address), consumer, guard)
        counted, program = _run(machine)
        return _Hits(counted, hits, program)

    def _offset(self, address: int) -> int:
        return self.image.offset_of(address) or 0

    def _code(self, address: int) -> Code:
        """Return an instruction as the providers see it."""
        start = max(self.function, address - REACH) if address >= self.function else address
        code = self.image.read(start, address - start + _LONGEST + REACH)
        return Code.at(code, address - start, address, longest=_LONGEST, around=REACH)

    def _of(self, provider: str) -> Sequence[UserSite]:
        """Return the function's instructions, and how a provider displaces them."""
        if provider not in self._sites:
            self._sites[provider] = user_sites(self.image.path, function=_FUNCTION, provider=provider)
        return self._sites[provider]

    def _site(self, provider: str, what: str) -> UserSite | None:
        """Return the function's first instruction behind its entry that is displaced like this."""
        return next((site for site in self._of(provider) if site.what == what and site.offset), None)

    def _row(self, mechanism: str, what: str, hits: _Hits, argument: str, events: Events, recorded: Anatomy,
             idle: Idle) -> Row:  # fmt: skip
        """Return the row of a measurement, for one hit."""
        assert hits.number, f"{what} on {self.isa.name} has not fired"
        plain = self._without(argument)
        own = hits.program - plain.program
        instructions = (hits.counted.discounted - plain.counted.discounted + own) / hits.number
        exceptions = (hits.counted.exceptions - plain.counted.exceptions) / hits.number
        return Row(
            self.isa.name, mechanism, what, instructions, events, exceptions, hits.number, recorded, idle,
            modelled=False,
        )  # fmt: skip

    def _recorded(self, argument: str, clause: str, *, uprobe: bool = False) -> Anatomy:
        text = clause if uprobe else f"{clause} {_RECORDED}"
        command = f"{OWN}{_PROGRAM} {argument}"
        return anatomy(record(StepRequest(text, isa=self.isa, guest="linux", command=command, uprobe=uprobe)))

    # -- the measurements

    def pid(self, kind: str) -> Row | None:
        """Measure a pid probe: entry, return, or the first instruction displaced like this."""
        site = self._site("pid", kind)
        named = kind in {"entry", "return"}
        if site is None and not named:
            return None
        name = kind if site is None else f"{site.offset:x}"
        probe = f"pid$target:a.out:{_FUNCTION}:{name}"
        offsets = {"entry": 0, "return": next(one.offset for one in self._of("pid") if "return" in one.probes)}
        address = self.function + (site.offset if site else offsets[kind])
        decision = self.fasttrap.treat(self._code(address), Fidelity.EXACT)
        events = of_decision(decision, copies_trap=self.fasttrap.always_steps or kind == "return")
        hits = self._traced(_RECURSION, probe)
        what = kind if site is None else f"{kind}: {site.text}"
        return self._row("pid", what, hits, _RECURSION, events, self._recorded(_RECURSION, probe), Idle())

    def uprobe(self, kind: str) -> Row | None:
        """Measure a uprobe at the first instruction displaced like this, or a return probe."""
        returns = kind == "return"
        site = None if returns else self._site("uprobe", kind)
        if site is None and not returns:
            return None
        address = self.function + (site.offset if site else 0)
        hits = self._probed(_RECURSION, address, returns=returns)
        events = of_decision(self.uprobes.treat(self._code(address), Fidelity.EXACT))._replace(returns=int(returns))
        definition = f"{'r' if returns else 'p'}:{OWN}{_PROGRAM}:{self._offset(address):#x}"
        recorded = self._recorded(_RECURSION, definition, uprobe=True)
        what = kind if site is None else f"{kind}: {site.text}"
        return self._row("uprobe", what, hits, _RECURSION, events, recorded, Idle())

    def marker(self, what: str, name: str, *, kernel: bool) -> Row | None:
        """Measure a marker of USDT, enabled by a uprobe of the Linux kernel, or by fasttrap."""
        marker = next(one for one in markers(self.image) if one.name == name)
        address = marker.location
        size = self.isa.instruction_length(self.image.read(address, _LONGEST))
        if kernel:
            hits = self._probed(_MARKERS, address, semaphore=marker.semaphore)
            events = of_decision(self.uprobes.treat(self._code(address), Fidelity.EXACT))
            recorded = self._recorded(_MARKERS, self._definition(marker), uprobe=True)
        else:
            probe = f"{_PROGRAM}$target:::{probe_name(name)}"
            hits = self._traced(_MARKERS, probe)
            events = of_decision(
                self.fasttrap.treat(self._code(address), Fidelity.EXACT), copies_trap=self.fasttrap.always_steps
            )
            recorded = self._recorded(_MARKERS, probe)
        return self._row("usdt", what, hits, _MARKERS, events, recorded, Idle(float(size), 1.0, 1.0))

    def _definition(self, marker: Marker) -> str:
        counted = f"({self._offset(marker.semaphore):#x})" if marker.semaphore else ""
        return f"p:marker {self.image.path}:{self._offset(marker.location):#x}{counted}"


_MEASUREMENTS: Final[Sequence[tuple[str, Callable[[ProgramLab], Row | None]]]] = (
    *(("pid", partial(ProgramLab.pid, kind=kind)) for kind in ("entry", "return", "emulated", "out of line")),
    *(("uprobe", partial(ProgramLab.uprobe, kind=kind)) for kind in ("simulated", "single-stepped", "return")),
    ("usdt", partial(ProgramLab.marker, what="enabled, uprobe", name=_MARKER, kernel=True)),
    ("usdt", partial(ProgramLab.marker, what="enabled, fasttrap", name=_MARKER, kernel=False)),
    ("usdt", partial(ProgramLab.marker, what="semaphore on, uprobe", name=_GUARDED, kernel=True)),
)
PROGRAM_MECHANISMS: Final = tuple(dict.fromkeys(name for name, _ in _MEASUREMENTS))


def program_rows(isa: Isa, wanted: Sequence[str]) -> Iterator[Row | None]:
    """Yield a row for each measurement that is wanted; None where the ISA does not have it."""
    if not set(wanted) & {*PROGRAM_MECHANISMS}:
        return
    lab = ProgramLab(isa)
    for name, run in _MEASUREMENTS:
        if name in wanted:
            yield run(lab)
