"""Check every encoding against the decode tables.

    python -m benchmarks.encodings [--isa ISA] [--sample N] [--jobs N].

All 2^32 words of AArch64, all of RISC-V, and x86-64 and i386 by class, each against capstone; see
docs/check-encodings.md.  Finished chunks are kept in benchmarks/results/.encodings, so that a
stopped run can be continued.  The totals go to benchmarks/results/encodings.json; the exit status
says whether every table was right.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from trapline.lab.check.encodings import SWEPT, Chunk, ChunkResult, chunks, classify
from trapline.lab.check.encodings.run import as_dict, fingerprint, summary, verdicts

RESULTS = Path(__file__).parent / "results"
TOTALS = RESULTS / "encodings.json"
STORE = RESULTS / ".encodings"


def stored(path: Path) -> dict[Chunk, ChunkResult]:
    """Return the chunks that were finished before; a truncated line is ignored."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.endswith("}"):
            result = ChunkResult.from_json(line)
            found[result.chunk] = result
    return found


def sweep(isa: str, sample: int | None, jobs: int) -> tuple[list[ChunkResult], float]:
    """Classify the remaining chunks of an ISA; return all chunks, and the seconds of this run."""
    wanted = list(chunks(isa, sample))
    path = STORE / f"{isa}-{fingerprint(isa)}.jsonl"
    done = stored(path) if sample is None else {}
    left = [chunk for chunk in wanted if chunk not in done]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    started = time.perf_counter()
    path.parent.mkdir(exist_ok=True)
    # Only this process handles interrupts; it stops the workers.
    pool = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    with Progress(*columns) as progress, pool:
        task = progress.add_task(isa, total=len(wanted), completed=len(wanted) - len(left))
        try:
            for future in as_completed([pool.submit(classify, chunk) for chunk in left]):
                result = future.result()
                done[result.chunk] = result
                if sample is None:
                    with path.open("a") as store:
                        store.write(result.to_json() + "\n")
                progress.advance(task)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return [done[chunk] for chunk in wanted], time.perf_counter() - started


def main() -> int:
    """Sweep; 1 if any table was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encodings", description="Look at every encoding.")
    parser.add_argument("--isa", choices=SWEPT, action="append")
    parser.add_argument("--sample", type=int, metavar="N", help="look at N encodings of each ISA only")
    parser.add_argument("--save", action="store_true", help="save the totals of a sample too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    right = True
    for isa in arguments.isa or SWEPT:
        results, seconds = sweep(isa, arguments.sample, arguments.jobs)
        judged = verdicts(isa, results)
        right &= all(verdict.right for verdict in judged)
        for line in (line for verdict in judged for line in summary(verdict)):
            print(line)
        print(f"{isa}: {seconds:.0f} s")
        if arguments.sample is None or arguments.save:
            totals = json.loads(TOTALS.read_text()) if TOTALS.exists() else {}
            totals[isa] = {"sample": arguments.sample, "tables": [as_dict(verdict) for verdict in judged]}
            TOTALS.write_text(json.dumps(totals, indent=1) + "\n")
    return not right


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; finished work is saved, and the same command continues there")
