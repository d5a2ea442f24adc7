"""The results of a check in an SQLite file, so that a killed run can be continued.

A unit of work (a range of sites, a whole run, a chunk of encodings) is recorded together with its
results, in one transaction: nothing is counted twice, and unfinished units are not counted.  The
units of a second share a transaction: a killed run repeats them.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from emu.isa.disassembly import Syntax
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import State
from trapline.lab.check.site.compare import TROUBLE, Difference, Divergence, Outcome, SiteResult

# The path of results that are not kept.
MEMORY: Final = ":memory:"
_VERSION: Final = 1
# Seconds to wait for another process that writes.
_PATIENCE: Final = 60.0
# Seconds for which units are kept before they are written. Each transaction rewrites the pages of the index that its
# sites are in, and the sites of a unit are alike, not near: a tenth of a check's time was this.
_DELAY: Final = 1.0
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS spec (text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS unit (name TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS site (
    subject TEXT NOT NULL, provider TEXT NOT NULL, address TEXT NOT NULL, name TEXT NOT NULL, code TEXT NOT NULL,
    outcome TEXT NOT NULL, why TEXT NOT NULL, states INTEGER NOT NULL, left_out INTEGER NOT NULL,
    divergences TEXT NOT NULL, PRIMARY KEY (subject, provider, address));
"""


class ResultsError(Exception):
    """A results file that cannot be used: the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole program or boot, run plain and with all its sites patched."""

    name: str
    """The name of the program."""
    same: bool
    instructions: int
    """Number of instructions of the plain run."""
    fired: int
    """The number of hits of probes."""
    differences: tuple[str, ...] = ()
    """The differences: output, exit status, instructions, memory."""
    culprit: str = ""
    """The first site that causes the difference, and the first instruction that differs."""
    status: str = ""
    """The ending of the plain run."""
    proves: bool = True
    """False: no probe fired, so that equal runs prove nothing, and that was not allowed."""

    @property
    def passed(self) -> bool:
        """Return whether the runs were the same, and their probes fired."""
        return self.same and self.proves


@dataclass(slots=True)
class Tally:
    """The results, counted."""

    spec: dict[str, Any]
    """The specification of the check, by option name: program, isa, provider, states, ..."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    files: dict[tuple[str, str], Counter[Outcome]] = field(default_factory=dict)
    """(file, provider) -> the outcomes there."""
    states: int = 0
    left_out: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    """Rule -> sites that it refuses."""
    trouble: list[tuple[str, str, SiteResult]] = field(default_factory=list)
    """(file, provider, site) of every divergence and crash."""
    runs: list[RunResult] = field(default_factory=list)
    encodings: list[dict[str, Any]] = field(default_factory=list)
    """Summaries of encodings checks: {isa, provider, encodings, classes, disagreements, unreached,
    ...}."""
    seconds: float = 0.0
    """Wall time of this run, without that of earlier runs."""
    omitted: tuple[str, ...] = ()
    """The omitted parts of the check, a sentence each."""
    syntax: Syntax = Syntax.INTEL
    """How reports write instructions."""
    fresh: int = 0
    """Site-states that this run itself compared."""
    executed: Counter[str] = field(default_factory=Counter)
    """The number of states that this run tried by machine code, and by Python
    (`SiteChecker.executed`)."""

    @property
    def sites(self) -> int:
        """The number of sites that were checked."""
        return self.outcomes.total()

    @property
    def empty(self) -> bool:
        """Return whether nothing was compared, so that there is no verdict."""
        return not (self.sites or self.runs or self.encodings)

    @property
    def same(self) -> bool:
        """Return whether nothing diverged, crashed, or disagreed, and the probes of each run fired."""
        return not (
            self.trouble
            or not all(run.passed for run in self.runs)
            or any(one["disagreements"] or one["unreached"] for one in self.encodings)
        )


class Results:
    """The file; `path` `MEMORY` for a temporary one.

    `spec` is the specification of the check: a file with results of another one is refused.  Raises
    `ResultsError`.
    """

    def __init__(self, path: str | Path, spec: dict[str, Any]) -> None:
        self.path = path
        self.spec = spec
        self._units: list[tuple[str, str]] = []
        self._sites: list[tuple[str | int, ...]] = []
        self._written = time.monotonic()
        text = json.dumps({"version": _VERSION, **spec}, sort_keys=True)
        with self.usable():
            self._database = sqlite3.connect(path, timeout=_PATIENCE)
            self._database.executescript(_TABLES)
            found = self._database.execute("SELECT text FROM spec").fetchone()
            if found is None:
                with self._database:
                    self._database.execute("INSERT INTO spec VALUES (?)", (text,))
            elif found[0] != text:
                self._database.close()
                changed = ", ".join(_changed(json.loads(found[0]), json.loads(text)))
                raise ResultsError(f"{path}: results of another check ({changed}); remove it, or name another file")

    @contextmanager
    def usable(self) -> Iterator[None]:
        """Turn the errors of a damaged file, and of a disk that is full, into `ResultsError`."""
        try:
            yield
        except sqlite3.Error as error:
            raise ResultsError(f"{self.path}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ResultsError(f"{self.path}: damaged ({error}); remove it, or name another file") from None

    def close(self) -> None:
        """Write what was added, and close the file."""
        with self.usable():
            self._write()
            self._database.close()

    def finished(self) -> set[str]:
        """Return the names of the units that are done."""
        with self.usable():
            self._write()
            return {name for (name,) in self._database.execute("SELECT name FROM unit")}

    def add(self, unit: str, data: dict[str, Any], sites: Iterable[tuple[str, str, SiteResult]] = ()) -> None:
        """Record a unit with its results: (file, provider, result) of each site.

        A result that is recorded already stays: another process has done the same check at the same
        time.
        """
        self._units.append((unit, json.dumps(data)))
        self._sites += [
            (
                subject,
                provider,
                f"{result.site.address:016x}",
                json.dumps(result.site[2:]),
                result.site.code.hex(),
                result.outcome.value,
                result.why,
                result.states,
                result.left_out,
                _divergences_as_text(result.divergences),
            )
            for subject, provider, result in sites
        ]
        if time.monotonic() - self._written > _DELAY:
            with self.usable():
                self._write()

    def _write(self) -> None:
        if self._units:
            with self._database:
                self._database.executemany("INSERT OR IGNORE INTO unit VALUES (?, ?)", self._units)
                self._database.executemany(
                    "INSERT OR IGNORE INTO site VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._sites
                )
            self._units, self._sites = [], []
        self._written = time.monotonic()

    def rows(self) -> list[tuple[str | int, ...]]:
        """Return what is recorded about each site: file, provider, address, and the results."""
        with self.usable():
            self._write()
            return self._database.execute("SELECT * FROM site ORDER BY subject, provider, address").fetchall()

    def executed(self) -> Counter[str]:
        """Return how many states each way of trying has tried (`SiteChecker.executed`)."""
        with self.usable():
            self._write()
            executed: Counter[str] = Counter()
            for (data,) in self._database.execute("SELECT data FROM unit"):
                executed.update(json.loads(data).get("executed", {}))
            return executed

    def chunks(self) -> Iterator[tuple[int, str]]:
        """Yield the chunks of encodings that are done: (which of the specification's, result)."""
        with self.usable():
            self._write()
            for (data,) in self._database.execute("SELECT data FROM unit WHERE name LIKE 'encodings %' ORDER BY name"):
                found = json.loads(data)
                if "chunk" in found:
                    yield found["encodings"], found["chunk"]

    def tally(self) -> Tally:
        """Count all results."""
        with self.usable():
            self._write()
            tally = Tally(self.spec)
            with closing(self._database.cursor()) as cursor:
                for (data,) in cursor.execute("SELECT data FROM unit ORDER BY name"):
                    found = json.loads(data)
                    if "run" in found:
                        found["run"]["differences"] = tuple(found["run"]["differences"])
                        tally.runs.append(RunResult(**found["run"]))
                for subject, provider, outcome, count, states, left_out in cursor.execute(
                    "SELECT subject, provider, outcome, COUNT(*), SUM(states), SUM(left_out) FROM site GROUP BY 1, 2, 3"
                ):
                    tally.outcomes[Outcome(outcome)] += count
                    tally.files.setdefault((subject, provider), Counter())[Outcome(outcome)] = count
                    tally.states += states
                    tally.left_out += left_out
                for why, count in cursor.execute(
                    "SELECT why, COUNT(*) FROM site WHERE outcome = ? GROUP BY why ORDER BY 2 DESC, 1",
                    (Outcome.REFUSED.value,),
                ):
                    tally.refusals[why] = count
            tally.trouble = list(self._trouble())
            return tally

    def _trouble(self) -> Iterator[tuple[str, str, SiteResult]]:
        for (
            subject,
            provider,
            address,
            name,
            code,
            outcome,
            why,
            states,
            left_out,
            divergences,
        ) in self._database.execute(
            "SELECT * FROM site WHERE outcome IN (?, ?, ?) ORDER BY subject, provider, address",
            tuple(one.value for one in TROUBLE),
        ):
            site = CheckSite(int(address, 16), bytes.fromhex(code), *json.loads(name))
            found = SiteResult(site, Outcome(outcome), why, states, left_out, _divergences(divergences))
            yield subject, provider, found


def _changed(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield f"{key} {before.get(key)} there, {after.get(key)} here"


def _divergences_as_text(divergences: tuple[Divergence, ...]) -> str:
    if not divergences:  # almost every site: this is a third of the time for recording it
        return "[]"
    return json.dumps(
        [
            {
                "way": one.way,
                "kind": one.state.kind,
                "registers": {name: f"{value:#x}" for name, value in one.state.registers.items() if value},
                "flags": one.state.flags,
                "vectors": one.state.vectors,
                "differences": [list(difference) for difference in one.differences],
            }
            for one in divergences
        ]
    )


def _divergences(text: str) -> tuple[Divergence, ...]:
    return tuple(
        Divergence(
            one["way"],
            State(
                one["kind"],
                {name: int(value, 16) for name, value in one["registers"].items()},
                one["flags"],
                one["vectors"],
            ),
            tuple(Difference(*difference) for difference in one["differences"]),
        )
        for one in json.loads(text)
    )
