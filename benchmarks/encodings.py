"""Check every encoding against the decode tables.

    python -m benchmarks.encodings [--isa ISA] [--sample N] [--jobs N] [--dask ADDRESS].

All 2^32 words of AArch64, all of RISC-V, and x86-64 and i386 by class, each against capstone; see
docs/check-encodings.md.  Finished chunks are kept in benchmarks/results/.ongoing, so that a
stopped run can be continued.  The totals go to benchmarks/results/encodings.json; the exit status
says whether every table was right.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from benchmarks.ongoing import RESULTS, add_options, command, complete, kept, workers
from benchmarks.provenance import stamped
from trapline.lab.check.encodings import SWEPT, Chunk, ChunkResult, chunks, classify
from trapline.lab.check.encodings.run import as_dict, fingerprint, summary, verdicts

TOTALS = RESULTS / "encodings.json"
_SEEDS = "none: every encoding"


def classified(chunk: Chunk) -> str:
    """Classify a chunk, in any process, and return its result as JSON."""
    return classify(chunk).to_json()


def sweep(isa: str, sample: int | None, arguments: argparse.Namespace) -> list[ChunkResult]:
    """Classify the remaining chunks of an ISA, and return all chunks."""
    units = {repr(chunk): (chunk,) for chunk in chunks(isa, sample)}
    done = kept(f"encodings-{isa}", fingerprint(isa))
    with workers(arguments) as make:
        found = complete(isa, units, classified, done, make, arguments.jobs)
    return [ChunkResult.from_json(text) for text in found]


def main(words: Sequence[str] | None = None) -> int:
    """Sweep; 1 if any table was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encodings", description="Look at every encoding.")
    parser.add_argument("--isa", choices=SWEPT, action="append")
    parser.add_argument("--sample", type=int, metavar="N", help="look at N encodings of each ISA only")
    parser.add_argument("--save", action="store_true", help="save the totals of a sample too")
    add_options(parser)
    arguments = parser.parse_args(words)
    right = True
    for isa in arguments.isa or SWEPT:
        begun = time.perf_counter()
        results = sweep(isa, arguments.sample, arguments)
        seconds = time.perf_counter() - begun
        judged = verdicts(isa, results)
        right &= all(verdict.right for verdict in judged)
        for line in (line for verdict in judged for line in summary(verdict)):
            print(line)
        print(f"{isa}: {seconds:.0f} s")
        if arguments.sample is None or arguments.save:
            totals = json.loads(TOTALS.read_text()) if TOTALS.exists() else {}
            before = totals.get(isa, {})
            now = {"sample": arguments.sample, "tables": [as_dict(verdict) for verdict in judged]}
            # What was there already keeps its date.
            totals[isa] = before if now.items() <= before.items() and "run" in before else stamped(now, _SEEDS)
            TOTALS.write_text(json.dumps(totals, indent=1) + "\n")
    return not right


if __name__ == "__main__":
    command(main)
