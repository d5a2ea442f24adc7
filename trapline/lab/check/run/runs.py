"""Whole programs, plain and with all their sites probed at once.

A program, or a boot of the kernel guest, runs plain and with every site patched.  Its output, exit
status, number of instructions and memory at the end must be the same.  If they are not, the cause
is searched (`trapline.lab.check.run.divergence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from emu.guest.kernel.trap_path import TrapPath
from emu.isa.disassembly import Syntax
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.results import RunResult
from trapline.lab.check.run.divergence import bisect, explain
from trapline.lab.check.run.ended import Ended
from trapline.lab.check.run.guest_runs import RunSpec, make_run


def run_check(spec: RunSpec, rules: Rules, syntax: Syntax = Syntax.INTEL) -> RunResult:
    """Run plain and patched, and compare; if they differ, search for the cause.

    Raises `GuestError`.
    """
    sites = spec.chosen(spec.subject.sites(rules))
    plain = make_run(spec, rules).go()
    fired = 0

    def patched(some: Sequence[CheckSite]) -> Ended:
        nonlocal fired
        run = make_run(spec, rules)
        run.patch(some)
        ended = run.go(plain.enough)
        fired = run.fired
        return ended

    found = tuple(differences(plain, patched(sites), spec))
    hits = fired
    culprit = ""
    if found:
        if any(differences(plain, make_run(spec, rules).go(), spec)):
            culprit = "nothing: without probes, too, the program does not do the same twice"
        else:
            first = bisect(sites, lambda some: any(differences(plain, patched(some), spec)))
            if spec.returns:
                culprit = f"{first.function}: its return address was replaced, as Linux does it (docs/fidelity.md)"
            else:
                culprit = explain(spec, rules, first, syntax)
    same = not found
    proves = bool(hits) or spec.may_be_idle
    if not hits:
        found = (*found, "no probe fired: the run proves nothing" + ("" if proves else " (--allow-idle accepts that)"))
    return RunResult(spec.name, same, plain.instructions, hits, found, culprit, plain.status, proves)


def differences(plain: Ended, patched: Ended, spec: RunSpec) -> Iterator[str]:
    """Yield the differences between two runs."""
    if plain.output != patched.output:
        pairs = enumerate(zip(plain.output, patched.output, strict=False))
        shorter = min(len(plain.output), len(patched.output))
        at = next((index for index, (one, other) in pairs if one != other), shorter)
        yield f"output from byte {at} on: {plain.output[at : at + 40]!r} became {patched.output[at : at + 40]!r}"
    for what in ("status", "memory", *(("instructions",) if spec.trap_path is TrapPath.HOST else ())):
        before, after = getattr(plain, what), getattr(patched, what)
        if before != after:
            yield f"{what}: {before} became {after}"


def as_data(result: RunResult) -> dict[str, Any]:
    """Return a result as data for JSON."""
    return asdict(result)
