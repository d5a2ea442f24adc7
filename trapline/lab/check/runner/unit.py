"""Units of work: the orders to a worker process, and its answers.

Everything that is sent between processes is small and plain: the specification by names, a unit by
numbers, the answer as data.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from emu.engine.errors import EngineError
from emu.guest.base import GuestError
from emu.guest.function import FunctionGuest
from emu.isa import DEFAULT_ISA
from emu.isa.disassembly import Syntax
from emu.native import available
from providers.fidelity import Fidelity
from trapline.lab.check import encodings
from trapline.lab.check.cpu.rules_under_test import Rules, check_isa, load_rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import BY_MACHINE_CODE, BY_PYTHON
from trapline.lab.check.encodings import run
from trapline.lab.check.native.batch import possible
from trapline.lab.check.prober import alike
from trapline.lab.check.results import RunResult
from trapline.lab.check.run.guest_runs import RunSpec
from trapline.lab.check.run.recorded import check_recorded
from trapline.lab.check.run.runs import as_data, run_check
from trapline.lab.check.site.compare import GUEST_PATH, PYTHON, Outcome, SiteChecker, SiteResult
from trapline.lab.check.site.kernel_path import KernelPathChecker
from trapline.lab.check.site.subject import Subject
from trapline.support import process

# The number of sites of a unit, and the largest number of its site-states, unless it has only one site.
UNIT: Final = 200
_UNIT_STATES: Final = 400_000


@dataclass(frozen=True, slots=True)
class EncodingsSpec:
    """An ISA's encodings, each of which is compared with the decode tables."""

    isa: str
    provider: str = ""
    """The provider whose table is judged; "": all."""
    sample: int | None = None
    """The number of encodings that are checked; None: all."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The specification of a check, by names."""

    subjects: tuple[Subject, ...] = ()
    states: int | None = None
    """The number of states in which each site is tried; None: as many as are worthwhile
    (`states_of`)."""
    rules: str = ""
    """"module:object"; "": the package's own."""
    fidelity: Fidelity = Fidelity.EXACT
    """Whether the systems' bugs are reproduced (`fidelity=freebsd`)."""
    runs: tuple[RunSpec, ...] = ()
    encodings: tuple[EncodingsSpec, ...] = ()
    accelerated: bool | None = None
    native: bool | None = None
    """Whether machine code tries the states; None: if it can, and TRAPLINE_ENGINE does not forbid
    it."""
    syntax: Syntax = Syntax.INTEL
    """How reports write instructions."""
    together: bool = True
    """Whether sites with the same instruction are tried together (`check.prober.alike`)."""
    omitted: tuple[str, ...] = ()
    """The omitted parts of the check, a sentence each."""

    def states_of(self, kind: str) -> int:
        """Return the number of states in which a unit of a kind tries each site."""
        if self.states is not None:
            return self.states
        accelerated = available() if self.accelerated is None else self.accelerated
        natively = kind == "sites" and possible(wanted=self.native, accelerated=accelerated)
        return BY_MACHINE_CODE if natively else BY_PYTHON

    def all_rules(self) -> Rules:
        """Return the rules.  Raises `RulesError`."""
        if self.rules:
            rules = load_rules(self.rules)
            for subject in self.subjects:
                check_isa(rules, self.rules, subject.isa.name, subject.path)
            return rules
        return Rules(fidelity=self.fidelity)


class Unit(NamedTuple):
    """A unit of work."""

    kind: str
    """A key of `WORK`."""
    number: int
    """Index among the specification's subjects, runs, or encodings."""
    first: int = 0
    last: int = 1
    """Sites, or chunks of encodings, [first, last)."""

    @property
    def name(self) -> str:
        """Its name in the results."""
        return f"{self.kind} {self.number} {self.first:08}-{self.last:08}"

    @property
    def whole(self) -> bool:
        """Whether it is a whole run of a program."""
        return self.kind in {"run", "recorded"}

    def halves(self) -> tuple[Unit, Unit] | None:
        """Return the two halves of this unit, None if it has only one site."""
        middle = (self.first + self.last) // 2
        if middle == self.first:
            return None
        return self._replace(last=middle), self._replace(first=middle)


class Done(NamedTuple):
    """A finished unit, and its results."""

    unit: Unit
    data: dict[str, Any]
    sites: list[tuple[str, str, SiteResult]]
    """(file, provider, result)."""


@lru_cache(maxsize=2)
def sites_of(spec: Spec, number: int) -> list[CheckSite]:
    """Return the sites of a subject, in the order in which they are checked."""
    return alike.ordered(spec.subjects[number].sites(spec.all_rules()))


@lru_cache(maxsize=1)
def _checker(spec: Spec, number: int) -> SiteChecker:
    subject = spec.subjects[number]
    plain = subject.cpu(stepping=True, accelerated=spec.accelerated)
    patched = subject.cpu(stepping=False, accelerated=spec.accelerated)
    prober = subject.prober(patched, spec.all_rules(), subject.bias)
    checker = SiteChecker(plain, patched, prober, spec.states_of("sites"), native=spec.native)
    if multiprocessing.parent_process() is not None:
        # A worker keeps its two guests, and all sites.  A caller's own process must be able to free them.
        process.relieve_collector()
    return checker


@lru_cache(maxsize=1)
def _kernel_checker(spec: Spec, number: int) -> KernelPathChecker:
    return KernelPathChecker(spec.subjects[number], spec.all_rules(), spec.states_of("guest"))


def _check_sites(spec: Spec, unit: Unit) -> Done:
    executed: Counter[str] = Counter()
    sites = [site.moved(spec.subjects[unit.number].bias) for site in _sites(spec, unit)]
    if spec.together:
        found = _together(spec, unit.number, sites, executed)
    else:
        found = [_one(spec, unit.number, site, _checker, executed) for site in sites]
    return _done(spec, unit, spec.subjects[unit.number].kind, found, executed)


def _check_kernel_path(spec: Spec, unit: Unit) -> Done:
    executed: Counter[str] = Counter()
    found = [_one(spec, unit.number, site, _kernel_checker, executed) for site in _sites(spec, unit)]
    return _done(spec, unit, GUEST_PATH, found, executed)


def _sites(spec: Spec, unit: Unit) -> list[CheckSite]:
    return sites_of(spec, unit.number)[unit.first : unit.last]


def _done(spec: Spec, unit: Unit, provider: str, results: Iterable[SiteResult], executed: Counter[str]) -> Done:
    """Return the results of a unit, in the order of its sites, at their addresses for users."""
    subject = spec.subjects[unit.number]
    found = [
        (subject.name, provider, replace(result, site=site.moved(subject.moved)))
        for site, result in zip(_sites(spec, unit), results, strict=True)
    ]
    return Done(unit, {"executed": dict(executed)}, found)


def _together(spec: Spec, number: int, sites: list[CheckSite], executed: Counter[str]) -> list[SiteResult]:
    """Check sites, as many as possible together."""
    checker = _checker(spec, number)
    try:
        results = checker.check_all(sites)
    except Exception:  # noqa: BLE001  it comes again where the site that causes it is checked by itself
        _checker.cache_clear()
        return [_one(spec, number, site, _checker, executed) for site in sites]
    executed += checker.executed
    checker.executed.clear()
    return results


def _one(spec: Spec, number: int, site: CheckSite, checker: Any, executed: Counter[str]) -> SiteResult:
    """Check a site; a checker that fails is replaced by a new one."""
    try:
        one = checker(spec, number)
        result: SiteResult = one.check(site)
        executed += one.executed
        one.executed.clear()
    except (EngineError, GuestError) as error:
        result = SiteResult(site, Outcome.CRASHED, f"{type(error).__name__}: {error}")
        checker.cache_clear()
    except Exception as error:  # noqa: BLE001  whatever a rule under test does, the others are checked
        result = SiteResult(site, Outcome.FAILED, f"{type(error).__name__}: {error}")
        checker.cache_clear()
    return result


def _run(spec: Spec, unit: Unit) -> Done:
    return Done(unit, {"run": as_data(run_check(spec.runs[unit.number], spec.all_rules(), spec.syntax))}, [])


def _recorded(spec: Spec, unit: Unit) -> Done:
    wanted = spec.runs[unit.number]
    provider = f"{wanted.subject.kind}, met in a run"
    found = check_recorded(wanted, spec.all_rules())
    executed = {PYTHON: sum(result.states for result in found)}
    return Done(unit, {"executed": executed}, [(wanted.subject.name, provider, result) for result in found])


@lru_cache(maxsize=1)
def _chunks(spec: EncodingsSpec, rules: str) -> list[encodings.Chunk]:
    return list(encodings.chunks(spec.isa, spec.sample, rules))


def _encodings(spec: Spec, unit: Unit) -> Done:
    chunk = _chunks(spec.encodings[unit.number], spec.rules)[unit.first]
    return Done(unit, {"chunk": encodings.classify(chunk).to_json(), "encodings": unit.number}, [])


# Kind of unit -> the function that does it.
WORK: Final = {
    "sites": _check_sites,
    "guest": _check_kernel_path,
    "run": _run,
    "recorded": _recorded,
    "encodings": _encodings,
}


def work(spec: Spec, unit: Unit) -> Done:
    """Do a unit, in any process."""
    return WORK[unit.kind](spec, unit)


def able() -> None:
    """Start two guests, as a check of sites does: the proof that this process can.

    Where it cannot, as with too little address space, the emulator ends its process.
    """
    for _ in range(2):
        _ = FunctionGuest(DEFAULT_ISA, b"").engine


def crashed(spec: Spec, unit: Unit, error: BaseException | None) -> Done:
    """Return the result of a unit of one site, or of a run, that killed its worker."""
    died = error is None or isinstance(error, BrokenExecutor)
    why = "the worker process died: the CPU emulator crashed" if died else f"{type(error).__name__}: {error}"
    if unit.kind not in {"sites", "guest"}:
        name = f"encodings {unit.first}" if unit.kind == "encodings" else spec.runs[unit.number].name
        lost = RunResult(name, same=False, instructions=0, fired=0, differences=(why,))
        return Done(unit, {"run": as_data(lost)}, [])
    subject = spec.subjects[unit.number]
    site = sites_of(spec, unit.number)[unit.first].moved(subject.moved)
    provider = subject.kind if unit.kind == "sites" else GUEST_PATH
    return Done(unit, {}, [(subject.name, provider, SiteResult(site, Outcome.CRASHED, why))])


def units(spec: Spec) -> list[Unit]:
    """Return all units of a check."""
    found = []
    for number, subject in enumerate(spec.subjects):
        count = len(sites_of(spec, number))
        kinds = ("sites", "guest") if subject.boots else ("sites",)
        for kind in kinds:
            size_ = max(1, min(UNIT, _UNIT_STATES // spec.states_of(kind)))
            found += [Unit(kind, number, first, min(first + size_, count)) for first in range(0, count, size_)]
    for number, wanted in enumerate(spec.runs):
        found.append(Unit("run", number))
        if wanted.recorded:
            found.append(Unit("recorded", number))
    for number, space in enumerate(spec.encodings):
        found += [Unit("encodings", number, at, at + 1) for at in range(len(_chunks(space, spec.rules)))]
    return found


def size(spec: Spec, unit: Unit) -> int:
    """Return the size of a unit in site-states, or in encodings; 0 for a whole run."""
    if unit.kind == "encodings":
        return _chunks(spec.encodings[unit.number], spec.rules)[unit.first].count
    return 0 if unit.whole else spec.states_of(unit.kind) * (unit.last - unit.first)


def verdicts(spec: Spec, chunks: Iterable[tuple[int, str]]) -> list[dict[str, Any]]:
    """Judge the tables by the finished chunks: (number in the specification, result)."""
    done: dict[int, list[encodings.ChunkResult]] = {number: [] for number in range(len(spec.encodings))}
    for number, text in chunks:
        done[number].append(encodings.ChunkResult.from_json(text))
    found = []
    for space, results in zip(spec.encodings, done.values(), strict=True):
        wanted = [space.provider] if space.provider else run.providers(space.isa, spec.rules)
        found += [run.as_dict(verdict) for verdict in run.verdicts(space.isa, results, wanted)]
    return found
