"""Check every instruction of whole programs, each in awkward states.

    python -m benchmarks.check [--isa ISA] [--case CASE] [--jobs N] [--dask ADDRESS].

The kernel guest (FBT, on both trap paths, and a whole boot), its user programs, Debian's static
busybox and the C library if `make debian` has fetched them, and Debian's Linux kernels if `make
kernels` has.  Every instruction of the programs is displaced by the pid provider and by uprobes.
The totals go to benchmarks/results/check.json; the exit status says whether anything diverged.  An
interrupted run continues where it stopped.  At its end it prints its rate, and the time that 10^8
and 10^9 site-states take at that rate.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import Progress

from benchmarks.ongoing import RESULTS, add_options, command, workers
from benchmarks.provenance import projection, stamped
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.lab.check.results import Results, Tally
from trapline.lab.check.run.guest_runs import RunSpec
from trapline.lab.check.runner.check import check, default_results, describe
from trapline.lab.check.runner.unit import Spec
from trapline.lab.check.site.compare import WHY_LEFT_OUT, Outcome
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import STORED, TargetError, find_files

DEBIAN = Path(__file__).parents[1] / ".debian"
SAVED = RESULTS / "check.json"
# trapline.lab.check.cpu.states draws each state from its own number.
SEEDS = "the number of each state, from 0"


def _kernel(isa: str) -> Spec:
    subject = Subject(find_files("testbins:kernel", ISAS[isa])[0], isa)
    return Spec((subject,), runs=tuple(RunSpec(subject, trap_path=path) for path in TrapPath))


def _user(isa: str, provider: str) -> Spec:
    programs = find_files("testbins:user", ISAS[isa])
    return Spec(tuple(Subject(path, isa, provider, every_instruction=True) for path in programs))


def _busybox(isa: str, provider: str) -> Spec:
    """Return busybox' specification.  Raises `TargetError` if it is not there."""
    subject = Subject(DEBIAN / isa / "usr/bin/busybox", isa, provider, every_instruction=True)
    if not subject.path.exists():
        raise TargetError(f"{subject.path} is not there: `make debian` fetches it")
    return Spec((subject,), runs=(RunSpec(subject, ("ls", "/etc"), DEBIAN / isa),))


def _libc(isa: str, provider: str) -> Spec:
    """Return the C library's specification.  Raises `TargetError` if it is not there."""
    libraries = sorted((DEBIAN / isa / "usr/lib").glob("*/libc.so.6"))
    if not libraries:
        raise TargetError(f"{DEBIAN / isa} has no libc.so.6: `make debian` fetches it")
    return Spec((Subject(libraries[0], isa, provider, every_instruction=True),))


def _linux_kernel(isa: str) -> Spec:
    """Return a stored kernel's specification.  Raises `TargetError` if there is none."""
    return Spec((Subject(find_files(STORED, ISAS[isa])[0], isa),))


CASES = {
    "kernel": _kernel,
    "user pid": lambda isa: _user(isa, "pid"),
    "user uprobe": lambda isa: _user(isa, "uprobe"),
    "linux kernel": _linux_kernel,
    "busybox pid": lambda isa: _busybox(isa, "pid"),
    "busybox uprobe": lambda isa: _busybox(isa, "uprobe"),
    "libc pid": lambda isa: _libc(isa, "pid"),
    "libc uprobe": lambda isa: _libc(isa, "uprobe"),
}
# The states of each site.  Machine code tries those of user programs, so more of them cost little; on
# the kernel's own trap path it is Python.  A Linux kernel and the C library have many sites.
STATES = {"user pid": 1000, "user uprobe": 1000, "linux kernel": 20, "libc pid": 20, "libc uprobe": 20}
_STATES_OF_OTHERS = 100


def _states(case: str) -> int:
    return STATES.get(case, _STATES_OF_OTHERS)


class _Bar:
    """Updates the progress bar of one case."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None)

    def begin(self, total: int, done: int) -> None:
        """Note the amount of work."""
        self._progress.update(self._task, total=total, completed=done)

    def advance(self, states: int) -> None:
        """Note that more work is done."""
        self._progress.advance(self._task, states)

    def runs(self, left: int) -> None:
        """Note that only whole runs are left."""
        if left:
            self._progress.console.print(f"{left} whole runs are left")


def _row(isa: str, case: str, tally: Tally, jobs: int) -> dict[str, Any]:
    rate = round(tally.fresh / tally.seconds / jobs) if tally.fresh else None
    return stamped(
        {
            "isa": isa,
            "case": case,
            "sites": tally.sites,
            "states": tally.states,
            "states_of_a_site": _states(case),
            "left_out": tally.left_out,
            "left_out_because": {WHY_LEFT_OUT: tally.left_out} if tally.left_out else {},
            "outcomes": {one.value: tally.outcomes[one] for one in Outcome if one in tally.outcomes},
            "refusals": dict(tally.refusals.most_common()),
            "runs": [{"name": run.name.rsplit("/", 1)[-1], "same": run.same, "fired": run.fired} for run in tally.runs],
            "diverged": [site.site.name for _, _, site in tally.trouble],
            "states_per_second_and_core": rate,
        },
        SEEDS,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Check; 1 if anything diverged."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description="Check every instruction.")
    parser.add_argument("--isa", choices=list(ISAS), action="append")
    parser.add_argument("--case", choices=list(CASES), action="append")
    add_options(parser)
    arguments = parser.parse_args(words)
    same = True
    fresh, seconds = 0, 0.0
    with workers(arguments) as make, Progress() as progress:
        for case in arguments.case or CASES:
            for isa in arguments.isa or ISAS:
                try:
                    spec = replace(CASES[case](isa), states=_states(case))
                except TargetError as error:
                    progress.console.print(f"{isa} {case}: left out: {error}", soft_wrap=True)
                    continue
                description = describe(spec)
                results = Results(default_results(description), description)
                bar = _Bar(progress, f"{isa} {case}")
                try:
                    tally = check(spec, results=results, executor=make, jobs=arguments.jobs, progress=bar)
                finally:
                    results.close()
                fresh, seconds = fresh + tally.fresh, seconds + tally.seconds
                row = _row(isa, case, tally, arguments.jobs)
                same &= tally.same
                progress.console.print(
                    f"{isa} {case}: {row['sites']:,} sites, {row['states']:,} states, {len(row['diverged'])} diverged",
                    soft_wrap=True,
                )
                _save(row)
    print(projection(fresh, seconds))
    return not same


def _save(row: dict[str, Any]) -> None:
    """Replace the earlier row of the same ISA and case, and add all up.

    A row of a run that had nothing left to do stays if it says the same.
    """
    before = json.loads(SAVED.read_text())["rows"] if SAVED.exists() else []
    merged = {(one["case"], one["isa"]): one for one in before}
    earlier = merged.get((row["case"], row["isa"]), {})
    apart = {"run", "states_per_second_and_core"}
    if row["states_per_second_and_core"] or any(earlier.get(key) != row[key] for key in {*row} - apart):
        merged[row["case"], row["isa"]] = row
    ordered = [merged[case, isa] for case in CASES for isa in ISAS if (case, isa) in merged]
    totals = {key: sum(one[key] for one in ordered) for key in ("sites", "states", "left_out")}
    diverged = sum(len(one["diverged"]) for one in ordered)
    SAVED.write_text(json.dumps({**totals, "diverged": diverged, "rows": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    command(main)
