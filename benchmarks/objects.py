"""Totals of `trapline check --object` on the files of real kernels.

    python -m benchmarks.objects linux-uprobes:6.12=/usr/src/linux fasttrap:14=/usr/src

Each argument is a glue, a name for the version of the sources, and their folder: they are not in
the repository.  They are compiled with the package's headers for each ISA that their system has,
and checked on system calls of the teaching kernel of that ISA.  The totals are added to
results/objects.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import save
from emu.elf import Image
from emu.guest.kernel.images import built
from emu.isa import ISAS, Isa
from providers.fidelity import Fidelity
from trapline.lab.objects.building import BuildError, build
from trapline.lab.objects.checking import check_objects
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import difference_text
from trapline.lab.objects.request import Request

RESULTS: Final = Path(__file__).parent / "results" / "objects.json"
# The fidelity with which the rules are those of the system that a glue is for.
_FIDELITY: Final = {
    "fasttrap": Fidelity.FREEBSD,
    "fbt": Fidelity.FREEBSD,
    "illumos-fasttrap": Fidelity.EXACT,  # there is none of illumos
}
_EXAMPLES: Final = 5
# The functions of the teaching kernel whose instructions are tried.
_FUNCTIONS: Final = "sys_[a-f]*"


def totals(glue_name: str, version: str, sources: Path, isa: Isa) -> dict[str, Any]:
    """Return the totals of one glue on one ISA.  Raises `BuildError`."""
    glue = find(glue_name)
    if glue.recipe is None:
        raise BuildError(f"{glue_name} has no recipe")
    with tempfile.TemporaryDirectory() as folder:
        objects = [one.object for one in build(glue.recipe, isa, sources, Path(folder))]
        fidelity = _FIDELITY.get(glue_name, Fidelity.LINUX)
        request = Request(Image(built(isa) / "kernel"), _FUNCTIONS, fidelity)
        report = check_objects(objects, glue, request, isa)
    return {
        "glue": glue_name,
        "sources": version,
        "ISA": isa.name,
        "counts": report.counts,
        "differences": Counter(one.kind for one in report.differences),
        "failures": len(report.failures),
        "bad accesses": [f"{one.where}: {one.what}" for one in report.accesses],
        "examples": [difference_text(one) for one in report.differences[:_EXAMPLES]],
    }


def main(arguments: Sequence[str]) -> int:
    """Check what the command line names, and save."""
    known = json.loads(RESULTS.read_text("utf-8"))["rows"] if RESULTS.exists() else []
    rows = {(row["glue"], row["sources"], row["ISA"]): row for row in known}
    for argument in arguments:
        named, _, folder = argument.partition("=")
        glue, _, version = named.partition(":")
        for isa in ISAS.values():
            try:
                row = totals(glue, version, Path(folder), isa)
            except BuildError as error:
                print(f"{glue}, {isa.name}: left out: {error}", file=sys.stderr)
                continue
            rows[glue, version, isa.name] = row
            print(glue, version, isa.name, row["counts"], dict(row["differences"]), flush=True)
            save(RESULTS, {"rows": [rows[key] for key in sorted(rows)]}, "states of registers: 20, of DisplacedCheck")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
