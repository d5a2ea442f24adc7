"""The number of site-states that a core checks per second: by machine code, and by Python."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.figures import Cell, Figures, Scale
from emu.isa import Isa
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import BY_MACHINE_CODE, BY_PYTHON
from trapline.lab.check.prober.alike import ordered
from trapline.lab.check.site.compare import PYTHON, SiteChecker
from trapline.lab.check.site.subject import Subject
from trapline.support import process
from trapline.support.targets import find_file

# States of each site -> number of sites: few, those of `trapline check`, and many.  The more sites, the more are alike.
_SITES: Final = {BY_PYTHON: 10_000, BY_MACHINE_CODE: 10_000, 2_000: 20}
# The measured sites begin here.
_FIRST: Final = 5_000
# The number of sites that Python alone checks: each by itself.
_PYTHON: Final = 20
_ROUNDS: Final = 3
# Sites before the measured ones: the first states are made there.
_WARM: Final = 20


def _checking(
    subject: Subject, sites: Sequence[CheckSite], states: int, scale: Scale, *, native: bool
) -> tuple[float, float]:
    """Return seconds of this process for a site-state, and the part that machine code tried."""
    plain, patched = subject.cpu(stepping=True), subject.cpu(stepping=False)
    checker = SiteChecker(plain, patched, subject.prober(patched, Rules()), states, native=native)
    warm = scale.rounds(_WARM)
    for site in sites[_FIRST - warm : _FIRST]:
        checker.check(site)
    checker.executed.clear()
    process.relieve_collector()  # as a worker of the command does
    measured = sites[_FIRST : _FIRST + scale.rounds(_SITES[states] if native else _PYTHON)]
    best = float("inf")
    for _ in range(scale.turns(_ROUNDS)):
        start = time.process_time()
        tried = sum(result.states for result in checker.check_all(ordered(measured)))
        best = min(best, (time.process_time() - start) / tried)
    return best, 1 - checker.executed[PYTHON] / checker.executed.total()


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure the site check on some ISAs."""

    def rows() -> Iterator[list[Cell]]:
        for isa in isas:
            for provider in scale.one(("pid", "uprobe")):
                subject = Subject(find_file("testbins:zoo", isa), isa.name, provider, every_instruction=True)
                sites = subject.sites(Rules())
                for states in scale.one(_SITES):
                    python, _ = _checking(subject, sites, states, scale, native=False)
                    native, part = _checking(subject, sites, states, scale, native=True)
                    yield [
                        isa.name,
                        provider,
                        states,
                        round(1 / native),
                        round(1 / python),
                        python / native,
                        100 * part,
                    ]

    return Figures(
        title="Site check",
        columns=("ISA", "provider", "states a site", "site-states/s", "by Python alone", "times", "% machine code"),
        rows=list(rows()),
        note="A site-state is two executions, all the loading and comparing, and its share of installing the probes. "
        "Times are this process's own.  320 states of a site are the command's default, and 20 where Python tries "
        "them; of 10,000 sites those with the same instruction are tried together, as the command does.",
        text_columns=frozenset({"ISA", "provider"}),
    )
