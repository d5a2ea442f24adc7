"""Check every instruction of whole programs, each in awkward states.

    python -m benchmarks.check [--isa ISA] [--case CASE] [--jobs N] [--dask ADDRESS].

The kernel guest (FBT, on both trap paths, and a whole boot), its user programs, and Debian's static
busybox if `make debian` has fetched it.  Every instruction of the programs is displaced by the pid
provider and by uprobes.  The totals go to benchmarks/results/check.json; the exit status says
whether anything diverged.  An interrupted run continues where it stopped.  At its end it prints
its rate, and the time that 10^8 and 10^9 site-states take at that rate.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from benchmarks.provenance import projection, provenance
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.commands.check import dask_workers
from trapline.lab.check.checking import check, default_results, describe
from trapline.lab.check.guest_runs import RunSpec
from trapline.lab.check.results import Results, Tally
from trapline.lab.check.subject import Subject
from trapline.lab.check.work import Spec
from trapline.targets import find_files

DEBIAN = Path(__file__).parents[1] / ".debian"
RESULTS = Path(__file__).parent / "results" / "check.json"
# trapline.lab.check.states draws each state from its own number.
_SEEDS = "the number of each state, from 0"


def _kernel(isa: str) -> Spec:
    subject = Subject(find_files("testbins:kernel", ISAS[isa])[0], isa)
    return Spec((subject,), runs=tuple(RunSpec(subject, trap_path=path) for path in TrapPath))


def _user(isa: str, provider: str) -> Spec:
    programs = find_files("testbins:user", ISAS[isa])
    return Spec(tuple(Subject(path, isa, provider, every_instruction=True) for path in programs))


def _busybox(isa: str, provider: str) -> Spec:
    subject = Subject(DEBIAN / isa / "usr/bin/busybox", isa, provider, every_instruction=True)
    return Spec((subject,), runs=(RunSpec(subject, ("ls", "/etc"), DEBIAN / isa),))


CASES = {
    "kernel": _kernel,
    "user pid": lambda isa: _user(isa, "pid"),
    "user uprobe": lambda isa: _user(isa, "uprobe"),
    "busybox pid": lambda isa: _busybox(isa, "pid"),
    "busybox uprobe": lambda isa: _busybox(isa, "uprobe"),
}


# The states of each site.  Machine code tries those of user programs, so more of them cost little; on
# the kernel's own trap path it is Python.
STATES = {"kernel": 100, "user pid": 1000, "user uprobe": 1000, "busybox pid": 100, "busybox uprobe": 100}


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
        self._progress.console.print(f"{left} whole runs are left")


def _row(isa: str, case: str, tally: Tally, jobs: int) -> dict[str, Any]:
    rate = round(tally.fresh / tally.seconds / jobs) if tally.fresh else None
    return {
        "isa": isa,
        "case": case,
        "sites": tally.sites,
        "states": tally.states,
        "states_of_a_site": STATES[case],
        "left_out": tally.left_out,
        "outcomes": {
            outcome.value: count for outcome, count in sorted(tally.outcomes.items(), key=lambda item: item[0].value)
        },
        "refusals": dict(tally.refusals.most_common()),
        "runs": [{"name": run.name.rsplit("/", 1)[-1], "same": run.same, "fired": run.fired} for run in tally.runs],
        "diverged": [site.site.name for _, _, site in tally.trouble],
        "states_per_second_and_core": rate,
        "run": provenance(_SEEDS),
    }


def main() -> int:
    """Check; 1 if anything diverged."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description="Check every instruction.")
    parser.add_argument("--isa", choices=list(ISAS), action="append")
    parser.add_argument("--case", choices=list(CASES), action="append")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dask", metavar="ADDRESS", help="use the workers of a Dask cluster, such as tcp://host:8786")
    arguments = parser.parse_args()
    try:
        executor = None if arguments.dask is None else dask_workers(arguments.dask)
    except click.ClickException as error:
        sys.exit(error.format_message())
    rows = []
    same = True
    fresh, seconds = 0, 0.0
    with Progress() as progress:
        for case in arguments.case or CASES:
            for isa in arguments.isa or ISAS:
                if case.startswith("busybox") and not DEBIAN.is_dir():
                    continue
                spec = replace(CASES[case](isa), states=STATES[case])
                description = describe(spec)
                results = Results(default_results(description), description)
                bar = _Bar(progress, f"{isa} {case}")
                try:
                    tally = check(spec, results=results, executor=executor, jobs=arguments.jobs, progress=bar)
                finally:
                    results.close()
                fresh, seconds = fresh + tally.fresh, seconds + tally.seconds
                rows.append(_row(isa, case, tally, arguments.jobs))
                same &= tally.same
                print(json.dumps(rows[-1] | {"refusals": len(tally.refusals)}), flush=True)
                _save(rows)
    print(projection(fresh, seconds))
    return not same


def _save(rows: list[dict[str, Any]]) -> None:
    """Replace earlier rows of the same ISA and case, and add all up."""
    before = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    merged = {(row["case"], row["isa"]): row for row in (*before, *rows)}
    ordered = [merged[case, isa] for case in CASES for isa in ISAS if (case, isa) in merged]
    totals = {key: sum(row[key] for row in ordered) for key in ("sites", "states", "left_out")}
    diverged = sum(len(row["diverged"]) for row in ordered)
    RESULTS.write_text(json.dumps({**totals, "diverged": diverged, "rows": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; finished work is saved, and the same command continues there")
