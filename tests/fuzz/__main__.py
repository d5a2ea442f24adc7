"""python -m tests.fuzz [CLASS ...]: run fuzzers, on from where they stopped."""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from benchmarks.provenance import provenance
from tests.fuzz import runner
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs import FUZZERS

RESULTS = Path(os.environ.get("FUZZ_RESULTS", Path(__file__).parents[2] / "benchmarks" / "results" / "fuzz.json"))
# Seconds between two writings of the totals, and cases of the first part.
_PART_TIME = 30.0
_FIRST_PART = 100


def main() -> int:
    """Run the command; return 1 if anything was found."""
    arguments = _arguments()
    names = arguments.classes or list(FUZZERS)
    unknown = [name for name in names if name not in FUZZERS]
    if unknown:
        sys.stderr.write(f"no fuzzer '{unknown[0]}'; there are {', '.join(FUZZERS)}\n")
        return 2
    if arguments.case is not None:
        return _one(FUZZERS[names[0]], arguments.case)
    if arguments.compare is not None:
        return max(_compare(FUZZERS[name], arguments.compare) for name in names)
    for name in names:
        FUZZERS[name].warm()
        FUZZERS[name].warm_for_long()
    found = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, disable=not sys.stderr.isatty()) as progress:
        to_do = {name: _to_do(name, arguments.cases, arguments.first) for name in names}
        tasks = {name: progress.add_task(name, total=cases) for name, cases in to_do.items()}
        parts = dict.fromkeys(names, _FIRST_PART)
        following = None if arguments.first is None else dict.fromkeys(names, arguments.first)
        until = time.monotonic() + 60 * arguments.minutes
        while any(to_do.values()) and time.monotonic() < until:  # a part of each class in turn
            for name in names:
                part = min(parts[name], to_do[name])
                if part and time.monotonic() < until:
                    to_do[name] -= part
                    since = time.monotonic()
                    found += _part(FUZZERS[name], part, progress, tasks[name], following)
                    parts[name] = max(1, int(part * min(10, _PART_TIME / (time.monotonic() - since))))
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help=f"of {', '.join(FUZZERS)}; default: all")
    parser.add_argument(
        "--cases",
        type=int,
        help="cases beside those done already; default: up to a million in all, or what the class says",
    )
    parser.add_argument("--first", type=int, metavar="N", help="begin with case N, and leave the totals as they are")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after about so many; default: never")
    parser.add_argument("--case", type=int, metavar="N", help="run case N of a class here, and show its traceback")
    parser.add_argument("--compare", type=int, metavar="N", help="run cases 0 to N alone and among others, and compare")
    return parser.parse_args()


def _one(fuzzer: Fuzzer, number: int) -> int:
    fuzzer.warm()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer.prepare(Path(folder))
        case = fuzzer.case(number)
        sys.stdout.write(f"{case[:4000]!r}\n{fuzzer.outcome(case)}\n")
    return 0


def _compare(fuzzer: Fuzzer, cases: int) -> int:
    """Run cases alone and among others; return 1 if one ends in another way."""
    numbered = runner.FromNumbers(fuzzer, range(cases))
    differ = 0
    together, alone = (runner.outcomes(fuzzer, numbered, alone=alone) for alone in (False, True))
    for number, (one, other) in enumerate(zip(together, alone, strict=True)):
        if one != other:
            differ += 1
            sys.stdout.write(f"{fuzzer.name} {number}: {one[:200]} among others, {other[:200]} alone\n")
    sys.stdout.write(f"{fuzzer.name}: {cases} cases, {differ} differ\n")
    return 1 if differ else 0


def _totals() -> dict[str, dict[str, object]]:
    return json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}  # type: ignore[no-any-return]


def _done(name: str) -> int:
    return int(str(_totals().get(name, {}).get("cases", 0)))


def _to_do(name: str, cases: int | None, first: int | None) -> int:
    if cases is not None:
        return cases
    return max(0, FUZZERS[name].whole - (_done(name) if first is None else 0))


def _part(fuzzer: Fuzzer, part: int, progress: Progress, task: TaskID, following: dict[str, int] | None) -> int:
    """Run the next `part` cases of a class; return how many were found.

    `following` has the number of each class' next case; None: those after the cases of the totals,
    which they are added to.
    """
    first = _done(fuzzer.name) if following is None else following[fuzzer.name]
    numbers = range(first, first + part)
    since = time.monotonic()
    tally = runner.run(fuzzer, runner.FromNumbers(fuzzer, numbers), lambda _n: progress.advance(task))
    for finding in tally.findings:
        kept = "" if finding.keep() else " (a kept case ends like this)"
        progress.console.print(f"{fuzzer.name} {finding.number}: {finding.why}{kept}", markup=False, soft_wrap=True)
    if following is None:
        _save(fuzzer.name, tally, time.monotonic() - since)
    else:
        following[fuzzer.name] += part
        progress.console.print(f"{fuzzer.name}: cases {first} to {first + part - 1}, {len(tally.findings)} found")
    return len(tally.findings)


def _save(name: str, tally: runner.Tally, seconds: float) -> None:
    """Add to the totals; other processes may do so at the same time, each with classes of its own."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _add(name, tally, seconds)


def _add(name: str, tally: runner.Tally, seconds: float) -> None:
    totals = _totals()
    row = totals.setdefault(name, {"cases": 0, "found": 0, "seconds": 0, "slowest": 0.0, "outcomes": {}})
    outcomes = dict(row["outcomes"])  # type: ignore[call-overload]
    for outcome, count in tally.outcomes.items():
        outcomes[outcome] = outcomes.get(outcome, 0) + count
    row["cases"] = int(str(row["cases"])) + tally.cases
    row["found"] = int(str(row["found"])) + len(tally.findings)
    row["seconds"] = round(float(str(row["seconds"])) + seconds, 1)
    row["slowest"] = max(float(str(row["slowest"])), round(tally.slowest, 2))
    row["outcomes"] = dict(sorted(outcomes.items()))
    row["run"] = provenance("the number of each case, from 0")
    RESULTS.write_text(json.dumps(dict(sorted(totals.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
