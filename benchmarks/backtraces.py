"""Stacks of programs against gdb's under qemu-user: python -m benchmarks.backtraces [ISA ...].

The programs are those of tests/emu/guest/linux/backtraces.py; `make debian` gets Debian's.  The
totals go to results/backtraces.json.  The exit status is 1 if any stack differs.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.provenance import save
from emu.isa import ISAS
from tests.emu.guest.linux.backtraces import (
    DEBIAN_CASES,
    GDB,
    NOT_COMPARED,
    QEMU,
    ZOO_CASES,
    Case,
    debian,
    gdb_stacks,
    guest_stacks,
    zoo,
)

RESULTS = Path(__file__).parent / "results" / "backtraces.json"


def _compared(isa: str, name: str, case: Case) -> dict[str, Any]:
    if (isa, name) in NOT_COMPARED:
        return {"skipped": NOT_COMPARED[isa, name]}
    if not case.program.exists():
        return {"skipped": f"{case.words[0]} is not there: `make debian` gets it"}
    wanted, found = gdb_stacks(isa, case), guest_stacks(isa, case)
    return {
        "stacks": len(wanted),
        "equal": sum(one == other for one, other in zip(wanted, found, strict=False)),
        "missing": len(wanted) - len(found),
        "frames": sum(map(len, wanted)),
        "deepest": max(map(len, wanted), default=0),
    }


def main() -> int:
    """Compare all cases of the ISAs that are named, of all by default."""
    isas = sys.argv[1:] or list(ISAS)
    if GDB is None or any(QEMU[isa] is None for isa in isas):
        print("nothing to compare with: gdb-multiarch and qemu-user (Debian) are needed")
        return 2
    results: dict[str, dict[str, Any]] = {}
    for isa in isas:
        cases = {name: zoo(isa, name) for name in ZOO_CASES} | {name: debian(isa, name) for name in DEBIAN_CASES}
        results[isa] = {name: _compared(isa, name, case) for name, case in cases.items()}
        for name, row in results[isa].items():
            print(isa, name, row.get("skipped") or f"{row['equal']} of {row['stacks']}, {row['frames']} frames")
    if len(isas) == len(ISAS):
        save(RESULTS, results)
    rows = [row for each in results.values() for row in each.values() if "stacks" in row]
    equal, stacks = sum(row["equal"] for row in rows), sum(row["stacks"] for row in rows)
    print(f"{equal} of {stacks} stacks are those that gdb finds, {sum(row['frames'] for row in rows)} frames")
    return 0 if equal == stacks and not any(row["missing"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
