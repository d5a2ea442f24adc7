"""How many site-states a core checks in a second, and what bare Unicorn needs for the steps alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import unicorn

from benchmarks.figures import Cell, Figures
from emu.isa import ISAS, Isa
from trapline.lab.check.compare import SiteChecker
from trapline.lab.check.rules import Rules
from trapline.lab.check.subject import Subject, find

_SITES = 600
_STATES = 20
_ROUNDS = 3
_STEPS = 20_000
_ARCHITECTURES = {
    "x86_64": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64, b"\x90"),
    "aarch64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, b"\x1f\x20\x03\xd5"),
    "riscv64": (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64, b"\x13\x00\x00\x00"),
    "i386": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_32, b"\x90"),
}


def _checking(isa: str, provider: str) -> float:
    """Return seconds of this process for a site-state."""
    subject = Subject(find("testbins:zoo", isa)[0], isa, provider, every_instruction=True)
    rules = Rules()
    plain, patched = subject.cpu(stepping=True), subject.cpu(stepping=False)
    checker = SiteChecker(plain, patched, subject.prober(patched, rules), _STATES)
    sites = subject.sites(rules)[5_000 : 5_000 + _SITES]
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.process_time()
        states = sum(checker.check(site).states for site in sites)
        best = min(best, (time.process_time() - start) / states)
    return best


def _stepping(isa: Isa) -> float:
    """Return the seconds of one counted instruction on bare Unicorn, through its Python binding."""
    architecture, mode, nop = _ARCHITECTURES[isa.name]
    uc = unicorn.Uc(architecture, mode)
    uc.mem_map(0x1000, 0x1000)
    uc.mem_write(0x1000, nop * 64)
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.process_time()
        for _ in range(_STEPS):
            uc.emu_start(0x1000, 0x2000, count=1)
        best = min(best, (time.process_time() - start) / _STEPS)
    return best


def measure() -> Figures:
    """Measure the site check on every ISA."""

    def rows() -> Iterator[list[Cell]]:
        for isa in _ARCHITECTURES:
            step = _stepping(ISAS[isa])
            for provider in ("pid", "uprobe"):
                seconds = _checking(isa, provider)
                yield [isa, provider, round(1 / seconds), 1e6 * seconds, seconds / step]

    return Figures(
        title="Site check",
        columns=("ISA", "provider", "site-states/s", "us a site-state", "bare steps"),
        rows=list(rows()),
        note="A site-state is two executions, all the loading and comparing, and its share of installing the probes; "
        "a bare step is one counted instruction through Unicorn's Python binding.  Times are this process's own.",
        text_columns=frozenset({"ISA", "provider"}),
    )
