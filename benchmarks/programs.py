"""Real programs on four ISAs against qemu-user: those with equal output, with and without probes.

Scripts that start many programs are compared with their native output.

`python -m benchmarks.programs [ISA ...] [programs] [scripts]` writes results/programs.json;
`make debian` gets the programs.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import stamped
from emu.isa import ISAS
from tests.emu.guest.linux.programs.workloads import (
    DEBIAN,
    QEMU,
    SCRIPTS,
    Workload,
    in_guest,
    script_in_guest,
    under_qemu,
    workloads,
)

RESULTS = Path(__file__).parent / "results" / "programs.json"


def _one(isa: str, workload: Workload) -> dict[str, Any]:
    begun = time.perf_counter()
    wanted = under_qemu(isa, workload)
    qemu = time.perf_counter()
    plain = in_guest(isa, workload, probed=False)
    ran = time.perf_counter()
    probed = in_guest(isa, workload, probed=True) if workload.probe else plain
    return {
        "as_qemu": workload.same(plain.output, wanted),
        "as_unprobed": probed.output == plain.output,
        "instructions": plain.instructions,
        "fired": probed.fired,
        "calls_missing": sorted(plain.problems),
        "seconds": {"qemu": round(qemu - begun, 2), "guest": round(ran - qemu, 2)},
    }


def _script(isa: str, name: str) -> dict[str, Any]:
    begun = time.perf_counter()
    plain, wanted = script_in_guest(isa, name, probed=False)
    ran = time.perf_counter()
    probed, _ = script_in_guest(isa, name, probed=True)
    return {
        "as_natively": plain.output == wanted,
        "as_unprobed": probed.output == plain.output,
        "instructions": plain.instructions,
        "fired": probed.fired,
        "calls_missing": sorted(plain.problems),
        "seconds": round(ran - begun, 2),
    }


def _scripts(isa: str) -> dict[str, Any]:
    """Run the scripts, whose oracle is their native output on x86-64."""
    rows = {name: _script(isa, name) for name in SCRIPTS}
    return {
        "scripts": len(rows),
        "as_natively": sum(row["as_natively"] for row in rows.values()),
        "as_unprobed": sum(row["as_unprobed"] for row in rows.values()),
        "instructions": sum(row["instructions"] for row in rows.values()),
        "probes_fired": sum(row["fired"] for row in rows.values()),
        "calls_missing": sorted({call for row in rows.values() for call in row["calls_missing"]}),
        "different": [name for name, row in rows.items() if not (row["as_natively"] and row["as_unprobed"])],
        "seconds": round(sum(row["seconds"] for row in rows.values()), 1),
    }


def _programs(isa: str) -> dict[str, Any]:
    rows = {one.name: _one(isa, one) for one in workloads() if one.is_there(isa)}
    different = [name for name, row in rows.items() if not (row["as_qemu"] and row["as_unprobed"])]
    return {
        "programs": len(rows),
        "as_qemu": sum(row["as_qemu"] for row in rows.values()),
        "as_unprobed": sum(row["as_unprobed"] for row in rows.values()),
        "instructions": sum(row["instructions"] for row in rows.values()),
        "probes_fired": sum(row["fired"] for row in rows.values()),
        "calls_missing": sorted({call for row in rows.values() for call in row["calls_missing"]}),
        "different": different,
        "seconds": {kind: round(sum(row["seconds"][kind] for row in rows.values()), 1) for kind in ("qemu", "guest")},
    }


def _save(isa: str, kind: str, found: dict[str, Any]) -> None:
    """Put the totals of one ISA into the saved ones."""
    saved = json.loads(RESULTS.read_text())
    known = saved.setdefault(isa, {})
    if kind == "scripts":
        known["scripts"] = stamped(found)
    else:
        saved[isa] = stamped(found) | ({"scripts": known["scripts"]} if "scripts" in known else {})
    RESULTS.write_text(json.dumps({one: saved[one] for one in ISAS if one in saved}, indent=1) + "\n")


def main() -> None:
    """Run all, or those of the named ISAs and kinds; save totals and differences."""
    asked = set(sys.argv[1:])
    for isa in ISAS:
        if asked.intersection(ISAS) and isa not in asked:
            continue
        if not (DEBIAN / isa / "usr/bin/bash").exists():
            print("no programs: `make debian` gets them, qemu-user runs them")
            continue
        kinds = asked - set(ISAS) or {"programs", "scripts"}
        if QEMU[isa] is not None and "programs" in kinds:
            found = _programs(isa)
            _save(isa, "programs", found)
            told = ", ".join(found["different"]) or "none"
            print(f"{isa}: {found['as_qemu']} of {found['programs']} as qemu-user, different: {told}")
        if "scripts" in kinds:
            found = _scripts(isa)
            _save(isa, "scripts", found)
            told = ", ".join(found["different"]) or "none"
            print(f"{isa}: {found['as_natively']} of {found['scripts']} scripts as natively, different: {told}")


if __name__ == "__main__":
    main()
