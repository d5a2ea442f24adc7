"""Site-states that a core checks in a second, and what bare Unicorn needs for the steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import unicorn

from benchmarks.figures import Cell, Figures, Scale
from emu.isa import Isa
from trapline.lab.check.compare import SiteChecker
from trapline.lab.check.rules import Rules
from trapline.lab.check.subject import Subject
from trapline.targets import find_file

_SITES = 600
_STATES = 20
_ROUNDS = 3
_STEPS = 20_000


def _checking(isa: Isa, provider: str, scale: Scale) -> float:
    """Return seconds of this process for a site-state."""
    subject = Subject(find_file("testbins:zoo", isa), isa.name, provider, every_instruction=True)
    rules = Rules()
    plain, patched = subject.cpu(stepping=True), subject.cpu(stepping=False)
    checker = SiteChecker(plain, patched, subject.prober(patched, rules), _STATES)
    sites = subject.sites(rules)[5_000 : 5_000 + scale.rounds(_SITES)]
    best = float("inf")
    for _ in range(scale.turns(_ROUNDS)):
        start = time.process_time()
        states = sum(checker.check(site).states for site in sites)
        best = min(best, (time.process_time() - start) / states)
    return best


def _stepping(isa: Isa, scale: Scale) -> float:
    """Return the seconds of one counted instruction on bare Unicorn, through its Python binding."""
    uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
    uc.mem_map(0x1000, 0x1000)
    uc.mem_write(0x1000, isa.jump.nop * 64)
    best = float("inf")
    steps = scale.rounds(_STEPS)
    for _ in range(scale.turns(_ROUNDS)):
        start = time.process_time()
        for _ in range(steps):
            uc.emu_start(0x1000, 0x2000, count=1)
        best = min(best, (time.process_time() - start) / steps)
    return best


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure the site check on some ISAs."""

    def rows() -> Iterator[list[Cell]]:
        for isa in isas:
            step = _stepping(isa, scale)
            for provider in ("pid", "uprobe"):
                seconds = _checking(isa, provider, scale)
                yield [isa.name, provider, round(1 / seconds), 1e6 * seconds, seconds / step]

    return Figures(
        title="Site check",
        columns=("ISA", "provider", "site-states/s", "us a site-state", "bare steps"),
        rows=list(rows()),
        note="A site-state is two executions, all the loading and comparing, and its share of installing the probes; "
        "a bare step is one counted instruction through Unicorn's Python binding.  Times are this process's own.",
        text_columns=frozenset({"ISA", "provider"}),
    )
