"""A check from beginning to end: the work, the workers, and the results.

    tally = check(Spec((Subject(Path("a.out")),)))
    assert tally.same

This is the Python interface of `trapline check`.  Any `concurrent.futures.Executor` can be used.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import emu
import providers
from emu.support import disk_cache
from trapline.lab.check.encodings.run import fingerprint
from trapline.lab.check.results import MEMORY, Results, Tally
from trapline.lab.check.runner.pool import Crew, MakeExecutor, local
from trapline.lab.check.runner.unit import Done, EncodingsSpec, Spec, Unit, size, units, verdicts
from trapline.lab.check.site.compare import Outcome
from trapline.lab.check.site.subject import Subject

# The modules whose source determines the results of a check.
_OURS: Final = (*(Path(str(package.__file__)).parent for package in (emu, providers)), Path(__file__).parents[1])


class Progress(Protocol):
    """Receives the progress of a check, in site-states."""

    def begin(self, total: int, done: int) -> object:
        """Note the amount of work, and the part that was done earlier."""
        ...

    def advance(self, states: int) -> object:
        """Note that more work is done."""
        ...

    def runs(self, left: int) -> object:
        """Note the number of remaining whole runs, when nothing else is left."""
        ...


def describe(spec: Spec) -> dict[str, Any]:
    """Return what the results depend on: the content of the files, and of the rules."""
    rules = hashlib.sha256()
    for place in _OURS:
        for path in sorted(place.rglob("*.py")):
            rules.update(path.read_bytes())
    return {
        "programs": _programs(spec),
        "states": spec.states or ", ".join(str(spec.states_of(kind)) for kind in ("sites", "guest")),
        "rules": spec.rules or spec.fidelity.value,
        "together": spec.together,
        "runs": [run.name for run in spec.runs],
        "idle runs": any(run.may_be_idle for run in spec.runs),
        "encodings": [(one.isa, one.provider, one.sample, fingerprint(one.isa)) for one in spec.encodings],
        "source": rules.hexdigest()[:16],
    }


def _programs(spec: Spec) -> list[dict[str, Any]]:
    """Return the programs, each once, with the distances at which it is tried."""
    found: dict[Subject, list[int]] = {}
    for subject in spec.subjects:
        found.setdefault(replace(subject, moved=0), []).append(subject.moved)
    return [
        {
            "path": str(subject.path),
            "content": hashlib.sha256(subject.path.read_bytes()).hexdigest()[:16],
            "isa": subject.isa.name,
            "provider": subject.kind,
            "function": subject.function,
            "every instruction": subject.every_instruction,
            **({"moved": [f"{distance:#x}" for distance in moved]} if any(moved) else {}),
        }
        for subject, moved in found.items()
    ]


def default_results(description: dict[str, Any]) -> Path:
    """Return the file that keeps the results of a check while it runs, by default."""
    name = hashlib.sha256(repr(sorted(description.items())).encode()).hexdigest()[:16]
    place = disk_cache.folder()
    # Without a place for them, an interrupted check starts again.
    return Path(MEMORY) if place is None else place / f"check-{name}.sqlite"


def check(
    spec: Spec,
    *,
    results: Results | None = None,
    executor: Executor | MakeExecutor | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    found: Callable[[Done], object] = lambda _done: None,
) -> Tally:
    """Do the remaining work of a check, and return all results, also the earlier ones.

    `executor`: one of `concurrent.futures`' kind, or a function that makes them (a new one is made
    when a worker has died); None: `jobs` processes.  `found` is called for each unit when it is
    complete.  Raises `emu.elf.image.ElfError`, `SubjectError`, `RulesError`, and `OSError` if a
    worker cannot read the file.
    """
    spec.all_rules()
    results = results or Results(MEMORY, describe(spec))
    before = time.monotonic()
    finished = results.finished()
    every = units(spec)
    left = [unit for unit in every if unit.name not in finished and not _covered(unit, finished)]
    if progress is not None:
        progress.begin(
            sum(size(spec, unit) for unit in every), sum(size(spec, unit) for unit in every if unit not in left)
        )
    fresh = 0
    executed: Counter[str] = Counter()
    pending = Counter(unit.whole for unit in left)
    if progress is not None and not pending[False]:
        progress.runs(pending[True])
    crew = Crew(_maker(executor, jobs), jobs)
    try:
        for done in crew.run(spec, left):
            results.add(done.unit.name, done.data, done.sites)
            fresh += sum(result.states for _, _, result in done.sites)
            executed.update(done.data.get("executed", {}))
            found(done)
            pending[done.unit.whole] -= 1
            if progress is not None:
                progress.advance(size(spec, done.unit))
                if not pending[False]:
                    progress.runs(pending[True])
    finally:
        crew.close()
    tally = results.tally()
    with results.usable():
        tally.encodings = verdicts(spec, results.chunks())
    tally.seconds = time.monotonic() - before
    tally.fresh, tally.executed = fresh, executed
    tally.syntax = spec.syntax
    tally.omitted = spec.omitted
    return tally


def _maker(executor: Executor | MakeExecutor | None, jobs: int) -> MakeExecutor:
    if executor is None:
        return local(jobs)
    return (lambda: executor) if isinstance(executor, Executor) else executor


def _covered(unit: Unit, finished: set[str]) -> bool:
    """Return whether a unit was done in parts: it was halved after a crash."""
    halves = unit.halves()
    return halves is not None and all(half.name in finished or _covered(half, finished) for half in halves)


__all__ = ["EncodingsSpec", "Outcome", "Progress", "Spec", "Tally", "check", "default_results", "describe"]
