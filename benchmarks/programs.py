"""Real programs on four ISAs against qemu-user: how many print the same, with and without probes.

`python -m benchmarks.programs` writes results/programs.json; `make debian` gets the programs.
"""

import json
import time
from pathlib import Path
from typing import Any

from emu.isa import ISAS
from tests.linux.programs.running import QEMU, Workload, in_guest, under_qemu, workloads

RESULTS = Path(__file__).parent / "results" / "programs.json"


def _one(isa: str, workload: Workload) -> dict[str, Any]:
    begun = time.perf_counter()
    wanted = under_qemu(isa, workload)
    qemu = time.perf_counter()
    plain = in_guest(isa, workload, probed=False)
    ran = time.perf_counter()
    probed = in_guest(isa, workload, probed=True) if workload.probe else plain
    return {
        "as_qemu": plain.output == wanted,
        "as_unprobed": probed.output == plain.output,
        "instructions": plain.instructions,
        "fired": probed.fired,
        "calls_missing": sorted(plain.problems),
        "seconds": {"qemu": round(qemu - begun, 2), "guest": round(ran - qemu, 2)},
    }


def main() -> None:
    """Run all and save the totals, with each run that differs."""
    found = {}
    for isa in ISAS:
        if QEMU[isa] is None:
            continue
        rows = {one.name: _one(isa, one) for one in workloads() if one.is_there(isa)}
        different = [name for name, row in rows.items() if not (row["as_qemu"] and row["as_unprobed"])]
        found[isa] = {
            "programs": len(rows),
            "as_qemu": sum(row["as_qemu"] for row in rows.values()),
            "as_unprobed": sum(row["as_unprobed"] for row in rows.values()),
            "instructions": sum(row["instructions"] for row in rows.values()),
            "probes_fired": sum(row["fired"] for row in rows.values()),
            "calls_missing": sorted({call for row in rows.values() for call in row["calls_missing"]}),
            "different": different,
            "seconds": {
                kind: round(sum(row["seconds"][kind] for row in rows.values()), 1) for kind in ("qemu", "guest")
            },
        }
        print(
            f"{isa}: {found[isa]['as_qemu']} of {len(rows)} as qemu-user, different: {', '.join(different) or 'none'}"
        )
    if found:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    else:
        print("no programs: `make debian` gets them, qemu-user runs them")


if __name__ == "__main__":
    main()
