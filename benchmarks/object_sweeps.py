"""Totals of `trapline check --object --sweep` on x86, with the files of real kernels or our own.

    python -m benchmarks.object_sweeps fasttrap:14=/usr/src 10000000
    python -m benchmarks.object_sweeps linux-uprobes:testbins 1000000

The arguments are a glue, a name for the version of the sources, their folder, and how many of the
encodings of `trapline/lab/check/encodings/x86_space.py` the decoder is asked about.  The totals are
added to results/object_sweeps.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import stamped
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS, Isa
from providers.fidelity import Fidelity
from trapline.lab.check.encodings.x86_space import DEFAULT_BOUND, Space
from trapline.lab.objects.build import BuildError, build
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import difference_text
from trapline.lab.objects.request import Request

RESULTS: Final = Path(__file__).parent / "results" / "object_sweeps.json"
# The fidelity with which the rules are those of the system that a glue is for.
_FIDELITY: Final = {"linux-uprobes": Fidelity.LINUX, "linux-kprobes": Fidelity.LINUX, "fasttrap": Fidelity.FREEBSD}
_OWN: Final = "testbins"
_OWN_OBJECTS: Final = {"linux-uprobes": "xol.o", "fasttrap": "exhibits/loop_count.o"}
_EXAMPLES: Final = 5


def totals(glue_name: str, version: str, sources: Path | None, isa: Isa, encodings: int) -> dict[str, Any]:
    """Return the totals of one decoder.  Raises `BuildError`."""
    glue = find(glue_name)
    with tempfile.TemporaryDirectory() as folder:
        if sources is None:
            objects = [built(isa) / "objects" / _OWN_OBJECTS[glue_name]]
        elif glue.recipe is None:
            raise BuildError(f"{glue_name} has no recipe")
        else:
            objects = [one.object for one in build(glue.recipe, isa, sources, Path(folder))]
        fidelity = _FIDELITY.get(glue_name, Fidelity.EXACT)
        request = Request(fidelity=fidelity, sample=encodings, sweep=Path(folder), bound=DEFAULT_BOUND)
        begun = time.process_time()
        report = check_objects(objects, glue, request, isa)
        seconds = time.process_time() - begun
    return {
        "glue": glue_name,
        "sources": version,
        "ISA": isa.name,
        "fidelity": fidelity.value,
        "bound": DEFAULT_BOUND,
        "enumerated": len(Space(isa.name, DEFAULT_BOUND)),
        "counts": report.counts,
        "kinds of differences": len(report.differences),
        "failures": len(report.failures),
        "examples": [difference_text(one) for one in report.differences[:_EXAMPLES]],
        "encodings/s": round(report.counts["encodings"] / seconds),
    }


def main(arguments: Sequence[str]) -> int:
    """Sweep what the command line names, and save."""
    named, encodings = arguments
    what, _, folder = named.partition("=")
    glue, _, version = what.partition(":")
    if not folder and (version != _OWN or glue not in _OWN_OBJECTS):
        print(f"{named}: name the sources: {glue}:VERSION=FOLDER, or one of {', '.join(_OWN_OBJECTS)} with :{_OWN}",
              file=sys.stderr)  # fmt: skip
        return 2
    known = json.loads(RESULTS.read_text("utf-8"))["rows"] if RESULTS.exists() else []
    rows = {(row["glue"], row["sources"], row["ISA"]): row for row in known}
    for isa in ISAS.values():
        if isa.registers.link:  # its instructions are words
            continue
        row = totals(glue, version, Path(folder) if folder else None, isa, int(encodings))
        rows[glue, version, isa.name] = stamped(row, "the enumeration's order and bytes: Space")
        print(glue, version, isa.name, row["counts"], row["kinds of differences"], row["encodings/s"], flush=True)
        RESULTS.write_text(json.dumps({"rows": [rows[key] for key in sorted(rows)]}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
