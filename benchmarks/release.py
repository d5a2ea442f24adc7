"""The long checks one after the other, then docs/evidence.md: a night's work.

    python -m benchmarks.release [--minutes N] [--jobs N] [--dask ADDRESS].

Every site and instruction in states (`check`), every encoding (`encodings`), every instruction of
whole programs (`sweep`), every order of patching and executing (`race`).  Stopped by ^C or by the
time limit, the same command goes on where it was.  With --minutes, each part has its share of the
time, and what one does not need the next ones have.  The exit status says whether anything was
wrong.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks import check, encodings, evidence, prose, race, sweep
from benchmarks.ongoing import RESULTS, STOPPED, TimeIsUpError, add_options, bounded, command, complete, workers
from emu.isa import ISAS


def _race(words: Sequence[str]) -> int:
    """Explore every order of patching and executing; 1 if our own method fails anywhere."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    arguments = parser.parse_args(words)
    with workers(arguments) as make:
        found = complete("race", race.units(ISAS.values()), race.explored, race.finished(), make, arguments.jobs)
    figures = race.figures(found)
    figures.save(RESULTS / "race.json")
    rows = [dict(zip(figures.columns, row, strict=True)) for row in figures.rows]
    wrong = [row for row in rows if "ours" in str(row["whose"]) and (row["wrong"] or row["undecided"])]
    print(f"{sum(int(row['races']) for row in rows):,} races, {len(wrong)} of our methods wrong")
    return bool(wrong)


PARTS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "check": check.main,
    "encodings": encodings.main,
    "sweep": sweep.main,
    "race": _race,
}


def main(words: Sequence[str] | None = None) -> int:
    """Do all parts; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.release", description="The long checks, in turn.")
    parser.add_argument("--minutes", type=float, metavar="N", help="stop after about so many; default: never")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this part")
    add_options(parser)
    arguments = parser.parse_args(words)
    passed_on = ["--jobs", str(arguments.jobs), *(["--dask", arguments.dask] if arguments.dask else [])]
    ends = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    wrong, unfinished = [], []
    parts = arguments.part or list(PARTS)
    for index, name in enumerate(parts):
        print(f"== {name}", flush=True)
        share = None if ends is None else max(1.0, (ends - time.monotonic()) / (len(parts) - index))
        try:
            with bounded(share):
                if PARTS[name](passed_on):
                    wrong.append(name)
        except TimeIsUpError:
            unfinished.append(name)
    prose.write()
    for line in evidence.totals():
        print(line)
    print(f"wrong: {', '.join(wrong) or 'nothing'}; not finished: {', '.join(unfinished) or 'nothing'}")
    if unfinished:
        print(STOPPED)
    return bool(wrong)


if __name__ == "__main__":
    command(main)
