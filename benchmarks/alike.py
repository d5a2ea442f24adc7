"""Compare two checks of whole programs: equal instructions tried together, and each where it is.

    python -m benchmarks.alike [--isa ISA] [--case CASE] [--states N] [--jobs N] [--dask ADDRESS].

`trapline check` tries most sites with the same instruction at the address of one of them
(`trapline.lab.check.prober.alike` says why that is enough).  This program tries each of them at its
own address as well, in the same states, and compares what was found about each site.  The counts go
to benchmarks/results/alike.json; the exit status says whether anything differs.  An interrupted run
continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rich.console import Console

import benchmarks.check
from benchmarks.ongoing import RESULTS, add_options, command, workers
from benchmarks.provenance import stamped
from emu.isa import ISAS
from trapline.lab.check.cpu.states import BY_PYTHON
from trapline.lab.check.results import Results
from trapline.lab.check.runner.check import check, default_results, describe
from trapline.lab.check.runner.pool import MakeExecutor
from trapline.lab.check.runner.unit import Spec
from trapline.lab.check.site.compare import ELSEWHERE
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import TargetError, find_files

_SAVED: Final = RESULTS / "alike.json"
_PROVIDERS: Final = ("pid", "uprobe")


def _zoo(provider: str) -> Callable[[str], Spec]:
    return lambda isa: Spec((Subject(find_files("testbins:zoo", ISAS[isa])[0], isa, provider, every_instruction=True),))


# Kind of programs and provider -> the check of an ISA.
CASES: Final[Mapping[str, Callable[[str], Spec]]] = {
    f"{programs} {provider}": _zoo(provider) if programs == "zoo" else benchmarks.check.CASES[f"{programs} {provider}"]
    for programs in ("user", "zoo", "busybox")
    for provider in _PROVIDERS
}


def compare(spec: Spec, make: MakeExecutor, jobs: int) -> dict[str, Any]:
    """Check in both ways; return the counts, and the addresses of sites with different results.

    `elsewhere` is the number of site-states that were tried at another site.
    """
    found, elsewhere, states = [], 0, 0
    for together in (True, False):
        wanted = replace(spec, together=together)
        description = describe(wanted)
        results = Results(default_results(description), description)
        try:
            states += check(wanted, results=results, executor=make, jobs=jobs).states * together
            elsewhere += results.executed()[ELSEWHERE]
            found.append({row[:3]: row for row in results.rows()})
        finally:
            results.close()
    first, second = found
    differing = sorted(key for key in {*first, *second} if first.get(key) != second.get(key))
    return {
        "sites": len(first),
        "states": states,
        "elsewhere": elsewhere,
        "differing": [" ".join(key) for key in differing],
    }


def main(words: Sequence[str] | None = None) -> int:
    """Compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alike", description="Try equal instructions twice.")
    parser.add_argument("--isa", choices=list(ISAS), action="append")
    parser.add_argument("--case", choices=list(CASES), action="append")
    parser.add_argument("--states", type=int, default=BY_PYTHON, help="states of each site; default: %(default)s")
    add_options(parser)
    arguments = parser.parse_args(words)
    console, same = Console(soft_wrap=True), True
    with workers(arguments) as make:
        for case in arguments.case or CASES:
            for isa in arguments.isa or ISAS:
                try:
                    spec = replace(CASES[case](isa), states=arguments.states, runs=())
                except TargetError as error:
                    console.print(f"{isa} {case}: left out: {error}")
                    continue
                row = compare(spec, make, arguments.jobs)
                same &= not row["differing"]
                console.print(
                    f"{isa} {case}: {row['sites']:,} sites, {row['states']:,} states, "
                    f"{row['elsewhere']:,} of them at another site; {len(row['differing'])} sites differ"
                )
                _save(stamped({"isa": isa, "case": case, **row}, benchmarks.check.SEEDS))
    return not same


def _save(row: dict[str, Any]) -> None:
    """Replace the earlier row of the same ISA and case, and add all up."""
    before = json.loads(_SAVED.read_text())["rows"] if _SAVED.exists() else []
    merged = {(one["case"], one["isa"]): one for one in (*before, row)}
    ordered = [merged[case, isa] for case in CASES for isa in ISAS if (case, isa) in merged]
    totals = {key: sum(one[key] for one in ordered) for key in ("sites", "states", "elsewhere")}
    differing = sum(len(one["differing"]) for one in ordered)
    _SAVED.write_text(json.dumps({**totals, "differing": differing, "rows": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    command(main)
