"""Every instruction of whole programs probed.

    python -m benchmarks.sweep [--isa ISA] [--case CASE] [--jobs N] [--dask ADDRESS].

Each case of the zoo (testbins/linux) runs plain, and with a pid probe at the entry, the returns and
every instruction of every function of the static program, libc included.  Its output, its exit
status and its number of executed instructions must be the same.  Debian's dash and coreutils, if
`make debian` has fetched them, run with every instruction of every function of their libc and their
interpreter probed.  The totals go to benchmarks/results/sweep.json; the exit status says whether
all were the same.  A stopped sweep continues with the case that it was stopped in.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import emu
import providers
import trapline.machine
from benchmarks.ongoing import RESULTS, add_options, command, complete, kept, workers
from benchmarks.provenance import save
from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.isa import ISAS, Isa
from providers.fasttrap import Fasttrap, PidProbes, Wanted
from trapline.lab.check.cpu.listener import Listener
from trapline.machine import linux_machine

CASES = (
    "recursion tailcalls setjmp cxx threads signals processes memory files switchcase args markers asm divide".split()
)
DEBIAN = Path(__file__).parents[1] / ".debian"
# Debian's programs: their words.
PROGRAMS = {
    "dash": (
        "/usr/bin/dash",
        "-c",
        'i=0; while [ $i -lt 50 ]; do i=$((i+1)); done; echo "$i ${PATH##*/}"; ls | head -2',
    ),
    "ls": ("/usr/bin/ls", "-la", "/usr"),
    "sort": ("/usr/bin/sort", "-r", "/etc/passwd"),
    "od": ("/usr/bin/od", "-c", "/etc/passwd"),
    "date": ("/usr/bin/date", "-u", "+%A %d %B %Y"),
}
SAVED = RESULTS / "sweep.json"


def run(isa: Isa, case: str, *, probed: bool) -> tuple[str, int | None, int, Counter[str]]:
    """Return output, exit status, instructions and the counts of probes."""
    output = bytearray()
    standard = Standard(write=output.extend, error=output.extend)
    root: Path | None = None
    words, module = (str(images.linux(isa, "zoo")), case), "a.out"
    if case in PROGRAMS:
        words, module, root = PROGRAMS[case], "", DEBIAN / isa.name
    options = linux_machine.LinuxOptions(words, isa=isa, root=root, standard=standard)
    guest = linux_machine.start_guest(options)
    counted: Counter[str] = Counter()
    if probed:
        framework = Listener()
        refusals: list[str] = []
        fasttrap = Fasttrap(guest.kernel, framework, report=refusals.append)
        pid = PidProbes(fasttrap, framework, guest.objects, lambda: None)
        pid.provide(guest.target, Wanted(module, "", ""))
        for _, probe in framework.created:
            fasttrap.enable(probe)
        guest.run(None)
        counted.update(probes=len(framework.created), refused=len(refusals), fired=framework.fired)
    else:
        guest.run(None)
    return output.decode("utf-8", "replace"), guest.exit_status, guest.engine.instructions, counted


def one(isa: str, case: str) -> dict[str, Any]:
    """Run a case plain and probed, and return its row."""
    plain, probed = run(ISAS[isa], case, probed=False), run(ISAS[isa], case, probed=True)
    same = plain[:3] == probed[:3]
    row = {"isa": isa, "case": case, "same": same, "instructions": plain[2], **probed[3]}
    return row if same else row | {"difference": f"{plain[1:3]} became {probed[1:3]}"}


def main(words: Sequence[str] | None = None) -> int:
    """Sweep; 1 if any run differed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description="Probe every instruction.")
    parser.add_argument("--isa", choices=list(ISAS), action="append")
    cases = (*CASES, *(PROGRAMS if DEBIAN.is_dir() else ()))
    parser.add_argument("--case", choices=cases, action="append")
    add_options(parser)
    arguments = parser.parse_args(words)
    units = {
        f"{isa} {case}": (isa, case)
        for isa in arguments.isa or ISAS
        for case in arguments.case or cases
        if case not in PROGRAMS or (DEBIAN / isa / PROGRAMS[case][0].lstrip("/")).exists()
    }
    done = kept("sweep", emu, providers, trapline.machine)
    with workers(arguments) as make:
        rows = complete("sweep", units, one, done, make, arguments.jobs)
    different = [f"{row['isa']} {row['case']}: {row['difference']}" for row in rows if not row["same"]]
    totals = {key: sum(row.get(key, 0) for row in rows) for key in ("instructions", "probes", "refused", "fired")}
    if not arguments.isa and not arguments.case:
        save(SAVED, {"runs": len(rows), "different": different, **totals, "rows": rows})
    print(f"{len(rows)} runs, {len(different)} different; {totals['probes']:,} probes, {totals['refused']:,} refused, "
          f"{totals['fired']:,} firings")  # fmt: skip
    for line in different:
        print(line)
    return bool(different)


if __name__ == "__main__":
    command(main)
