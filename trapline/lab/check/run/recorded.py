"""States of a real run: when it reaches a site, the instruction is tried in that state.

The run's registers are copied into the two CPUs, which borrow its memory page by page; neither the
run nor its memory changes.  Nothing is stored, so a run of any length can be checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.kernel.guest import KernelGuest
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.modules import Module
from emu.isa.base import Isa
from emu.support.words import BadAddressError
from providers import fasttrap, fbt
from providers.fasttrap.records import Probe, ProbeType
from trapline.lab.check.cpu.borrowed_memory import BorrowedSpace, BorrowingCpu, Lend
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import State, general_registers
from trapline.lab.check.run.guest_runs import LONGEST_RUN, RunSpec
from trapline.lab.check.site.compare import Outcome, SiteChecker, SiteResult

# The number of times that a site is tried: the first times that the run reaches it.
HITS: Final = 2


class RecordedChecker(SiteChecker):
    """Checks one site in one state, in all ways."""

    def check_in(self, site: CheckSite, state: State) -> SiteResult:
        """Check a site in a state, and forget the memory, which was valid only at this moment."""
        self._pool = (state,)
        result = self.check(site)
        self._plain.clean()
        self._patched.clean()
        return result

    def _numbers(self, site: CheckSite, ways: int) -> list[list[int]]:
        del site
        return [[0]] * ways


class _Tap(Listener):
    """A framework that calls a function with the probe that was hit."""

    def __init__(self, hit: Callable[[int], object]) -> None:
        super().__init__()
        self._hit = hit

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Take a firing."""
        del arg0, arg1, arg2, arg3, arg4
        self._hit(probe_id)


class _Visits:
    """The first times that a run reaches each site.

    `moved` are the sites at the run's addresses.
    """

    def __init__(self, spec: RunSpec, rules: Rules, bias: int, lend: Lend) -> None:
        subject = spec.subject
        self._isa = subject.isa
        self.sites = subject.sites(rules)
        self.moved = [site.moved(bias) for site in self.sites]
        code = subject.code(bias)
        plain, patched = (
            BorrowingCpu(self._isa, code, stepping=stepping, accelerated=spec.accelerated, space=BorrowedSpace)
            for stepping in (True, False)
        )
        for cpu in (plain, patched):
            cpu.space.lend = lend
        self._checker = RecordedChecker(plain, patched, subject.prober(patched, rules, bias), 1, native=False)
        self._hits: Counter[int] = Counter()
        self._results: dict[int, SiteResult] = {}

    def hit(self, number: int, engine: Engine, vectors: Sequence[memoryview]) -> None:
        """Try a site in the current state of a run."""
        self._hits[number] += 1
        if self._hits[number] <= HITS:
            found = self._checker.check_in(self.moved[number], _state(engine, self._isa, vectors))
            self._results[number] = _together(self._results.get(number), found)

    def results(self) -> list[SiteResult]:
        """Return the results of the sites that were reached, at the file's addresses."""
        return [
            replace(one, site=self.sites[number])
            for number, one in sorted(self._results.items())
            if one.outcome is not Outcome.REFUSED
        ]


def check_recorded(spec: RunSpec, rules: Rules) -> list[SiteResult]:
    """Run a program, or boot the kernel guest, and check the sites that it reaches.

    Raises `GuestError`.
    """
    return (_in_kernel if spec.subject.kind == "fbt" else _in_program)(spec, rules)


def _in_program(spec: RunSpec, rules: Rules) -> list[SiteResult]:
    program = Program(spec.program or str(spec.subject.path), spec.arguments)
    isa = spec.subject.isa
    guest = LinuxGuest(isa, program, root=spec.root, standard=Standard(), accelerated=spec.accelerated)
    process = guest.kernel.first
    assert process is not None
    loaded = next(one for one in guest.objects.of(process) if one.file is process.executable)

    def lend(page: int) -> tuple[bytes, Access] | None:
        assert guest.kernel.current is not None
        space = guest.kernel.current.process.space
        area = space.area_at(page)
        try:
            return None if area is None or not area.access else (space.peek(page, PAGE), area.access)
        except BadAddressError:
            return None

    visits = _Visits(spec, rules, loaded.bias, lend)
    vectors = guest.engine.cpu.vectors()
    framework = _Tap(lambda number: visits.hit(number, guest.engine, vectors))
    tap = fasttrap.Fasttrap(guest.kernel, framework)
    target = tap.target(process)
    for number, site in enumerate(visits.moved):
        tap.enable(Probe(target, ProbeType.OFFSETS, site.start or site.address, 1 << 32, (site.address,), id=number))
    guest.run(LONGEST_RUN)
    return visits.results()


def _in_kernel(spec: RunSpec, rules: Rules) -> list[SiteResult]:
    isa = spec.subject.isa
    guest = KernelGuest(isa, image=spec.subject.path, accelerated=spec.accelerated)

    def lend(page: int) -> tuple[bytes, Access] | None:
        try:
            return guest.engine.read(page, PAGE), Access.READ | Access.WRITE
        except BadAddressError:
            return None

    visits = _Visits(spec, rules, 0, lend)
    numbers = {site.address: number for number, site in enumerate(visits.sites)}

    def hit(_probe: int) -> None:
        visits.hit(numbers[guest.engine.pc], guest.engine, ())  # a kernel does not use vector registers

    framework = _Tap(hit)
    provider = fbt.FBT(framework, guest.patcher, guest.traps, isa)
    guest.boot()
    provider.provide_module(Module("kernel", guest.image.symbols, guest.patcher.original))
    for site in visits.sites:
        record = provider.table.find(site.address)
        if record is not None:
            guest.patcher.install(record.tracepoint)
    guest.run(LONGEST_RUN)
    return visits.results()


def _state(engine: Engine, isa: Isa, vectors: Sequence[memoryview]) -> State:
    names = (*general_registers(isa), *isa.registers.bases)
    flags = engine.read_register(isa.traps.flags) if isa.traps.flags else 0
    content = b"".join(bytes(place) for place in vectors)
    return State("met in a run", {name: engine.read_register(name) for name in names}, flags, 0, content)


def _together(before: SiteResult | None, now: SiteResult) -> SiteResult:
    """Return a site's combined result after another state."""
    if before is None:
        return now
    outcome = before.outcome if before.outcome is not Outcome.AGREED else now.outcome
    divergences = before.divergences or now.divergences
    return SiteResult(
        now.site, outcome, now.why, before.states + now.states, before.left_out + now.left_out, divergences
    )
