"""Totals of `trapline check --object` on the files of real kernels, and on small ones of our own.

    python -m benchmarks.objects linux-uprobes:6.12=/usr/src/linux fasttrap:14=/usr/src
    python -m benchmarks.objects fbt:testbins illumos-fbt:testbins

Each argument is a glue, a name for the version of the sources, and their folder: they are not in
the repository.  They are compiled with the package's headers for each ISA that their system has.
`testbins` are the objects of testbins/objects.  They are checked on system calls of the teaching
kernel of that ISA.  The totals are added to results/objects.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import stamped
from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS, Isa
from providers.fidelity import Fidelity
from trapline.lab.objects.build import BuildError, build
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import difference_text
from trapline.lab.objects.request import Request

RESULTS: Final = Path(__file__).parent / "results" / "objects.json"
# The fidelity with which the rules are those of the system that a glue is for.
_FIDELITY: Final = {
    "fasttrap": Fidelity.FREEBSD,
    "fbt": Fidelity.FREEBSD,
    "illumos-fasttrap": Fidelity.EXACT,  # there is none of illumos
    "illumos-fbt": Fidelity.EXACT,
}
_OWN: Final = "testbins"
# Glue -> the objects of testbins, by those that an ISA has; their rules are exact.
_OWN_OBJECTS: Final = {
    "fbt": ("scanner.o", "subr.o", "trap.o"),
    "illumos-fbt": ("illumos_fbt.o", "illumos_trap.o"),
}
_EXAMPLES: Final = 5
# The functions of the teaching kernel whose instructions are tried.
_FUNCTIONS: Final = "sys_[a-f]*"


def totals(glue_name: str, version: str, sources: Path | None, isa: Isa) -> dict[str, Any]:
    """Return the totals of one glue on one ISA; `sources` None: of our own objects.

    Raises `BuildError`.
    """
    glue = find(glue_name)
    kernel = Image(built(isa) / "kernel")
    if sources is None:
        report = check_objects(_own_objects(glue_name, isa), glue, Request(kernel, _FUNCTIONS), isa)
    elif glue.recipe is None:
        raise BuildError(f"{glue_name} has no recipe")
    else:
        with tempfile.TemporaryDirectory() as folder:
            objects = [one.object for one in build(glue.recipe, isa, sources, Path(folder))]
            request = Request(kernel, _FUNCTIONS, _FIDELITY.get(glue_name, Fidelity.LINUX))
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


def _own_objects(glue_name: str, isa: Isa) -> list[Path]:
    """Return our own objects for a glue.  Raises `BuildError`: there are none."""
    places = [built(isa) / "objects" / name for name in _OWN_OBJECTS.get(glue_name, ())]
    found = [place for place in places if place.exists()]
    if not found:
        raise BuildError(f"there are no objects of {_OWN} for it")
    return found


def main(arguments: Sequence[str]) -> int:
    """Check what the command line names, and save."""
    known = json.loads(RESULTS.read_text("utf-8"))["rows"] if RESULTS.exists() else []
    rows = {(row["glue"], row["sources"], row["ISA"]): row for row in known}
    for argument in arguments:
        named, _, folder = argument.partition("=")
        glue, _, version = named.partition(":")
        sources = Path(folder) if folder else None
        if sources is None and version != _OWN:
            print(f"{argument}: name the sources: {glue}:VERSION=FOLDER, or {glue}:{_OWN}", file=sys.stderr)
            return 2
        for isa in ISAS.values():
            try:
                row = totals(glue, version, sources, isa)
            except BuildError as error:
                print(f"{glue}, {isa.name}: left out: {error}", file=sys.stderr)
                continue
            rows[glue, version, isa.name] = stamped(row, "states of registers: 20, of DisplacedCheck")
            print(glue, version, isa.name, row["counts"], dict(row["differences"]), flush=True)
            result = {"rows": [rows[key] for key in sorted(rows)]}
            RESULTS.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
