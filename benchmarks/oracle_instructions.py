"""Ask Linux kernels for a uprobe on every different instruction of busybox and of other programs.

    python -m benchmarks.oracle_instructions [PROGRAM...] [--isa ISA] [--jobs N] [--dask ADDRESS].

Each instruction is asked for once by its bytes, and the answer is compared with that of
`trapline uprobe` (trapline.lab.oracle.instructions).  A program is a file for one of the ISAs, such
as a C library.  Finished slices are kept in benchmarks/results/.ongoing, so that a stopped run can
be continued.  The totals of what is finished go to benchmarks/results/oracle_instructions.json; the
exit status says whether all answers agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from benchmarks.kernels import with_kernels
from benchmarks.ongoing import RESULTS, add_options, command, complete, kept, workers
from benchmarks.provenance import stamped
from emu.elf.image import Image
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.isa.base import Isa
from providers import uprobes
from trapline.lab.oracle.instructions import SlotFile, ask, different, written
from trapline.lab.oracle.refusals import ALLOWED, Verdicts

TOTALS = RESULTS / "oracle_instructions.json"
_SEEDS = "none: every different instruction"
# Instructions of a unit: each boots the kernel from its snapshot.
_SLICE = 8000


def asked(isa: str, slotted: SlotFile, first: int, stop: int) -> list[list[Any]]:
    """Ask for a slice of the instructions, in any process."""
    return [list(astuple(one)) for one in ask(ISAS[isa], slotted, range(first, stop))]


def _totals(found: Iterable[Sequence[Sequence[Any]]], number: int) -> dict[str, Any]:
    """Add up the answers of finished slices."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    differing = 0
    for one in (Verdicts(*row) for rows in found for row in rows):
        counts[one.ours, one.kernel] += one.count
        examples.setdefault((one.ours, one.kernel), one.example)
        differing += 0 if one.agrees else one.count
    done = counts.total()
    refused = sum(count for (_, kernel), count in counts.items() if kernel != ALLOWED)
    return {
        "instructions": number,
        "asked": done,
        "left": number - done,
        "refused by the kernel": refused,
        "different": differing,
        "answers": [[*key, count, examples[key]] for key, count in counts.most_common()],
    }


def compare(isa: Isa, programs: Sequence[Image], arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask for what is left on one ISA; save and return the totals, also when it is stopped."""
    kernel = store.stored(isa)
    images = [Image(kernel.busybox), *(one for one in programs if one.isa is isa)]
    instructions = different(isa, images)
    content = hashlib.sha256(b"".join(one + b"\n" for one in instructions)).hexdigest()
    root = RESULTS / ".ongoing" / f"instructions-{isa.name}-{content[:16]}"
    slotted = written(root, instructions)
    slices = (range(first, min(first + _SLICE, len(instructions))) for first in range(0, len(instructions), _SLICE))
    units = {str(one.start): (isa.name, slotted, one.start, one.stop) for one in slices}
    done = kept(f"oracle-{isa.name}", uprobes, content, kernel.image.release)
    try:
        with workers(arguments) as make:
            complete(isa.title, units, asked, done, make, arguments.jobs)
    finally:
        now = _totals((done.results[key] for key in units if key in done.results), len(instructions))
        now = {"kernel": kernel.image.release, "programs": [Path(one.path).name for one in images], **now}
        totals = json.loads(TOTALS.read_text("utf-8")) if TOTALS.exists() else {}
        before = totals.get(isa.name, {})
        # What was there already keeps its date.
        totals[isa.name] = before if now.items() <= before.items() else stamped(now, _SEEDS)
        TOTALS.write_text(json.dumps(totals, indent=1) + "\n", "utf-8")
    return now


def main(words: Sequence[str] | None = None) -> int:
    """Compare; 1 if any answer differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle_instructions", description="Ask for uprobes.")
    parser.add_argument("programs", metavar="PROGRAM", nargs="*", help="a file beside busybox, such as a C library")
    parser.add_argument("--isa", choices=BOARDS, action="append")
    add_options(parser)
    arguments = parser.parse_args(words)
    programs = [Image(path) for path in arguments.programs]
    present, left_out = with_kernels([ISAS[name] for name in arguments.isa or BOARDS])
    print(*left_out, sep="\n", end="\n" if left_out else "")
    found = 0
    for isa in present:
        begun = time.perf_counter()
        totals = compare(isa, programs, arguments)
        seconds = time.perf_counter() - begun
        found += totals["different"]
        print(f"{isa.title}: {totals['asked']:,} instructions, {totals['different']} different, {seconds:.0f} s")
    return found > 0


if __name__ == "__main__":
    command(main)
