"""Does a displaced instruction still do the same? One site, in many states, on two CPUs.

The plain CPU executes the instruction itself; the patched one executes the breakpoint, and the
provider's replacement.  Everything is compared: registers, flags, vectors, the pc, memory, and the
fault with its kind and address.  If they differ, the state is reduced as long as it still shows the
difference.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from emu.support.words import BadAddressError
from trapline.lab.check.cpu.cpu import Ending, TrialCpu
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import REPEATED, State, States, chosen, general_registers
from trapline.lab.check.native.batch import Batches, possible
from trapline.lab.check.prober import alike
from trapline.lab.check.prober.probers import NoProbe, Prober, Way
from trapline.lab.check.site import together
from trapline.lab.check.site.together import Round, Share, Trial

# The largest number of bytes, or registers, that a divergence names one by one.
_SHOWN: Final = 6
# The bit of rflags that is always set.
_RESERVED: Final = 2


class Outcome(Enum):
    """The result of checking a site."""

    AGREED = "agreed"
    DIVERGED = "diverged"
    REFUSED = "refused"
    """No probe is allowed there."""
    UNREPEATABLE = "unrepeatable"
    """The instruction itself does not do the same twice, such as a read of a clock."""
    CRASHED = "crashed"
    """The CPU emulator did not survive it."""
    FAILED = "failed"
    """The rules under test raised an exception."""


# The function that tries a site in a state.
MACHINE_CODE: Final = "machine code"
ELSEWHERE: Final = "machine code, at an equal instruction"
PYTHON: Final = "Python"

# Outcomes that make a check fail.
TROUBLE: Final = (Outcome.DIVERGED, Outcome.CRASHED, Outcome.FAILED)


class Difference(NamedTuple):
    """One thing that differs."""

    what: str
    original: str
    patched: str

    def __str__(self) -> str:
        return f"{self.what}: {self.original} became {self.patched}"


@dataclass(frozen=True, slots=True)
class Divergence:
    """A difference between patched and plain execution, with the smallest state that shows it."""

    way: str
    state: State
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The result for one site."""

    site: CheckSite
    outcome: Outcome
    why: str = ""
    """The rule that refuses it, or how the displaced instruction is executed."""
    states: int = 0
    """States in which both were compared."""
    left_out: int = 0
    """States that were not compared (`WHY_LEFT_OUT`)."""
    divergences: tuple[Divergence, ...] = ()
    """At most one for each way of execution."""


# The provider of the sites that are tried on the guest kernel's own trap path.
GUEST_PATH: Final = "fbt, guest path"
WHY_LEFT_OUT: Final = "the instruction itself faults, and the kernel does not survive a fault of its own"


# How an execution ended; general registers, flags, vectors, and the memory that it wrote, by name.
_Seen = tuple[Ending, bytes, int, list[bytes], dict[str, bytes]]


class SiteChecker:
    """Checks the sites of one program for one provider, on two CPUs, one of which is probed.

    `native`: machine code tries the states (`trapline.lab.check.native`), and Python tries those
    that machine code cannot, or in which it finds a difference.  None: it does if it can run here,
    and TRAPLINE_ENGINE selects no other engine.
    """

    def __init__(
        self, plain: TrialCpu, patched: TrialCpu, prober: Prober, states: int, *, native: bool | None = None
    ) -> None:
        self._plain = plain
        self._patched = patched
        self._prober = prober
        self._states = states
        self._pool: Sequence[State] = States(plain.isa.name)
        self._names = general_registers(plain.isa)
        accelerated = plain.engine.accelerated and patched.engine.accelerated
        natively = possible(wanted=native, accelerated=accelerated)
        self._batches = Batches(plain, patched, self._pool) if natively else None
        self.executed: Counter[str] = Counter()
        """Site-states that machine code has tried, and those that Python has, by name."""

    def check(self, site: CheckSite) -> SiteResult:
        """Check a site in all ways in which its instruction may be executed."""
        looked = self._prober.look(site)
        if isinstance(looked, NoProbe):
            return SiteResult(site, Outcome.REFUSED, looked.rule)
        numbers = self._numbers(site, len(looked.ways))
        divergences = []
        repeats = self._repeats(site)
        for index, way in enumerate(looked.ways):
            with way.in_place():
                for position in self._for_python(site, numbers[index], repeats):
                    number = numbers[index][position]
                    if self._agree(site, number, repeats):
                        continue
                    if not self._repeatable(site, number, repeats):
                        return SiteResult(site, Outcome.UNREPEATABLE, looked.how)
                    divergences.append(self._smallest(site, way, self._pool[number], repeats))
                    break
        outcome = Outcome.DIVERGED if divergences else Outcome.AGREED
        return SiteResult(site, outcome, looked.how, sum(map(len, numbers)), divergences=tuple(divergences))

    def compare(self, site: CheckSite, state: State) -> tuple[Ending, tuple[Difference, ...]]:
        """Return how the original ends in a state, and what differs at a site that is patched."""
        repeats = self._repeats(site)
        differences = self._differences(site, state, repeats)
        self._plain.load(state)
        return self._seen(self._plain, site, repeats)[0], differences

    def decide(self, site: CheckSite) -> alike.Accepted | None:
        """Return how a site's instruction is displaced; None: `check` must check it by itself."""
        with suppress(BadAddressError):
            return self._prober.decide(site) if self._batches else None
        return None

    def check_all(self, sites: Iterable[CheckSite]) -> list[SiteResult]:
        """Check sites: those that are alike at one of them, and many at the same time."""
        sites = list(sites)
        found: list[SiteResult] = []
        for trials in together.batches(map(self._trial, alike.parts(alike.groups(sites, self.decide)))):
            known = [trial for trial in trials if trial.treated]
            for trial in together.overlapping(known):
                trial.undecided = True
            for repeats in (False, True):
                self._try_all([trial for trial in known if not trial.undecided and trial.repeats is repeats])
            for trial in trials:
                found += self._results(trial)
        order = {site.address: number for number, site in enumerate(sites)}
        return sorted(found, key=lambda result: order[result.site.address])

    def _trial(self, group: alike.Group) -> Trial:
        """Prepare the trial of sites that are alike."""
        sites, decision = group
        if decision is None:
            return Trial(sites, 0, None)
        treated = self._prober.treated(sites[0], decision)
        trial = Trial(sites, decision.length, treated, self._repeats(sites[0]))
        trial.shares = [Share(trial, site, self._numbers(site, len(trial.ways))) for site in sites]
        return trial

    def _try_all(self, trials: Sequence[Trial]) -> None:
        """Try the first way of all together, then the second of those that have one, and so on."""
        before: list[Way] = []
        try:
            for index in count():
                here = [trial for trial in trials if index < len(trial.ways) and not trial.undecided]
                ways = [trial.ways[index] for trial in here]
                self._prober.change(before, ways)
                before = ways
                if not here:
                    return
                self._try_round(Round([share for trial in here for share in trial.shares], index), len(trials) == 1)
        finally:
            self._prober.change(before, ())

    def _try_round(self, states: Round, python: bool) -> None:
        """Try states at their sites; `python`: also those that machine code cannot try."""
        assert self._batches is not None
        left_over = self._batches.left_over(
            states.sites, states.numbers, repeats=states.repeats, following=states.following
        )
        for index in left_over:
            share = states.share(index)
            share.by_python += 1
            share.trial.undecided = not python or not self._agree(
                share.trial.sites[0], states.numbers[index], states.repeats
            )

    def _results(self, trial: Trial) -> Iterator[SiteResult]:
        """Yield the results of sites, which are checked by themselves unless they all agreed."""
        if trial.undecided and len(trial.sites) > 1:
            trial.begin_again()
            self._try_all([trial])
        if trial.treated is None or trial.undecided:
            yield from map(self.check, trial.sites)
            return
        for number, share in enumerate(trial.shares):
            self.executed[PYTHON] += share.by_python
            self.executed[ELSEWHERE if number else MACHINE_CODE] += share.states - share.by_python
            yield SiteResult(share.site, Outcome.AGREED, trial.treated.how, share.states)

    def _repeats(self, site: CheckSite) -> bool:
        """Return whether an instruction repeats."""
        return self._plain.isa.repetition(site.code) is not None

    def _for_python(self, site: CheckSite, numbers: list[int], repeats: bool) -> Iterator[int]:
        """Yield the indices of states that machine code could not try, or found different."""
        batches = self._batches
        sites = array("Q", (site.address,)) * len(numbers)
        found = batches.left_over(sites, numbers, repeats=repeats) if batches else range(len(numbers))
        left = 0
        try:
            for index in found:
                left += 1
                yield index
        finally:
            self.executed[PYTHON] += left
            self.executed[MACHINE_CODE] += len(numbers) - left if batches else 0

    def _numbers(self, site: CheckSite, ways: int) -> list[list[int]]:
        """Return the states of the pool for each way of execution; the ways share a site's states."""
        numbers = chosen(site.address, self._states)
        return [numbers[index::ways] for index in range(ways)]

    # -- one state

    def _agree(self, site: CheckSite, number: int, repeats: bool) -> bool:
        """Return whether both end in the same state; the memory is clean before and after."""
        plain, patched = self._plain, self._patched
        plain.load_numbered(self._pool, number)
        patched.load_numbered(self._pool, number)
        return self._same(site, repeats)

    def _same(self, site: CheckSite, repeats: bool) -> bool:
        plain, patched = self._plain, self._patched
        if repeats:
            _cut(plain)
            _cut(patched)
        original = plain.execute(site.address, repeats=repeats)
        ending = patched.execute(site.address, repeats=repeats)
        same = original == ending and plain.same_registers(patched, called=original.system_call)
        if same and plain.is_clean() and patched.is_clean():
            return True
        same = same and plain.same_memory(patched)
        plain.clean()
        patched.clean()
        return same

    def _repeatable(self, site: CheckSite, number: int, repeats: bool) -> bool:
        """Return whether the instruction itself does the same twice."""
        seen = []
        for _ in range(2):
            self._plain.load_numbered(self._pool, number)
            seen.append(self._seen(self._plain, site, repeats))
        return seen[0] == seen[1]

    # -- a difference

    @staticmethod
    def _seen(cpu: TrialCpu, site: CheckSite, repeats: bool) -> _Seen:
        """Execute, and return everything to be compared; the memory is clean afterwards."""
        if repeats:
            _cut(cpu)
        ending = cpu.execute(site.address, repeats=repeats)
        seen = ending, cpu.general(), cpu.flags(), cpu.vectors(), cpu.written()
        cpu.clean()
        return seen

    def _differences(self, site: CheckSite, state: State, repeats: bool) -> tuple[Difference, ...]:
        """Return the differences in a state; empty if there are none."""
        self._plain.load(state)
        original = self._seen(self._plain, site, repeats)
        self._patched.load(state)
        patched = self._seen(self._patched, site, repeats)
        return tuple(self._tell(original, patched))

    def _tell(
        self,
        original: _Seen,
        patched: _Seen,
    ) -> Iterator[Difference]:
        if original[0] != patched[0]:
            yield Difference("end", str(original[0]), str(patched[0]))
        words = [memoryview(one[1]).cast("Q") for one in (original, patched)]
        for name, before, after in zip(self._names, *words, strict=True):
            if before != after and not (original[0].system_call and name in self._plain.clobbered_by_calls):
                yield Difference(name, f"{before:#x}", f"{after:#x}")
        if original[2] != patched[2]:
            yield Difference(self._plain.isa.traps.flags, f"{original[2]:#x}", f"{patched[2]:#x}")
        for number, (before, after) in enumerate(zip(original[3], patched[3], strict=True)):
            if before != after:
                yield from _bytes(f"vector registers, file {number}", before, after)
        for what in sorted({*original[4], *patched[4]}):
            yield from _bytes(what, original[4].get(what, b""), patched[4].get(what, b""))

    def _smallest(self, site: CheckSite, way: Way, state: State, repeats: bool) -> Divergence:
        """Make the state as small as possible: zeros for everything that does not matter."""
        differences = self._differences(site, state, repeats)
        if not differences:
            return Divergence(way.name, state, (Difference("once only", "", "not seen again"),))
        simpler: list[Callable[[State], State]] = [
            lambda one: replace(one, vectors=0),
            lambda one: replace(one, flags=one.flags & _RESERVED),
        ]
        simpler += [partial(_without, name=name) for name in state.registers]
        for simplify in simpler:
            smaller = simplify(state)
            found = self._differences(site, smaller, repeats) if smaller != state else ()
            if found:
                state, differences = smaller, found
        return Divergence(way.name, state, differences)


def _cut(cpu: TrialCpu) -> None:
    """Make a string instruction repeat only a few times."""
    counter = cpu.isa.registers.counter
    assert counter is not None, "instructions that repeat without a counter"
    cpu.engine.write_register(counter, cpu.engine.read_register(counter) & REPEATED)


def _without(state: State, name: str) -> State:
    return replace(state, registers={**state.registers, name: 0})


def _bytes(what: str, original: bytes, patched: bytes) -> Iterator[Difference]:
    """Yield the first range of bytes that differs."""
    if not original or not patched:
        yield Difference(what, "as it was" if not original else "written", "as it was" if not patched else "written")
        return
    offsets = [at for at, (before, after) in enumerate(zip(original, patched, strict=True)) if before != after]
    if offsets:
        part = slice(offsets[0], min(offsets[0] + 8, offsets[-1] + 1))
        yield Difference(f"{what} +{offsets[0]:#x}", original[part].hex(), patched[part].hex())
