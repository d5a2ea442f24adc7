"""The check of encodings for commands: the work to do, and its results."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import capstone

from emu.isa.i386 import stub as stub_i386
from emu.isa.x86 import instruction, length, plans
from emu.isa.x86_64 import stub
from providers import dis_tables
from providers import x86 as x86_rows
from providers.fasttrap import i386 as fasttrap_i386
from providers.fasttrap import x86 as fasttrap_rules
from providers.fasttrap import x86_64 as fasttrap
from providers.uprobes import i386 as uprobes_i386
from providers.uprobes import x86 as uprobes_rules
from providers.uprobes import x86_64 as uprobes
from trapline.lab.check.cpu.rules_under_test import RulesError, load_rules
from trapline.lab.check.encodings import ports, x86
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import ChunkResult
from trapline.lab.check.encodings.space import FORMS
from trapline.lab.check.encodings.tables import facts, tables
from trapline.lab.check.encodings.verdict import Verdict, judge

_X86 = (
    *(x86, ports, x86_rows, dis_tables, fasttrap_rules, fasttrap, uprobes_rules, uprobes),
    *(instruction, length, plans),
)
# The modules of rules that are code, by ISA.
MODULES: Mapping[str, tuple[ModuleType, ...]] = {
    "x86_64": (*_X86, stub),
    "i386": (*_X86, stub_i386, fasttrap_i386, uprobes_i386),
}
# The largest number of disagreements that are reported one by one.
_SHOWN = 20


def providers(isa: str, rules: str = "") -> tuple[str, ...]:
    """Return the names of an ISA's tables, or of the user's rules.  Raises `RulesError`.

    "pid:freebsd" is fasttrap's with the quirks of the systems that it comes from.
    """
    if rules:
        found = tuple(ports.of_rules(isa, load_rules(rules)))
        if not found:
            raise RulesError(
                f"{rules} has no rules for encodings: give a DisplacedTable, or a Port of fasttrap or uprobes"
            )
        return found
    return tuple(tables(isa)) if isa in FORMS else tuple(x86.ROWS[isa])


def fingerprint(isa: str) -> str:
    """Return a digest of what finished chunks depend on: if it changes, they are repeated.

    Chunks of the user's rules are not stored, because the dependencies of these rules are unknown.
    On x86-64 and i386, whose rules are code, it includes the text of the modules.
    """
    rules: list[object] = [capstone.__version__]
    rules += [
        (one.providers, one.rows, one.mask, one.value, sorted(one.names), one.differs, one.lengths)
        for one in EXEMPTIONS[isa]
    ]
    if isa in FORMS:
        rules += [
            (provider, row.name, row.mask, row.value, row.length, callable(row.what), facts(isa, provider, number))
            for provider, rows in tables(isa).items()
            for number, row in enumerate(rows)
        ]
    else:
        rules += [inspect.getsource(module) for module in MODULES[isa]]
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:16]


def verdicts(isa: str, results: Iterable[ChunkResult], wanted: Iterable[str] | None = None) -> tuple[Verdict, ...]:
    """Judge the tables of the given providers, or of all."""
    kept = tuple(results)
    rules = next((result.chunk.rules for result in kept), "")
    return tuple(judge(isa, provider, kept) for provider in wanted or providers(isa, rules))


def summary(verdict: Verdict) -> Iterator[str]:
    """Return a verdict as lines of text."""
    done = ", ".join(f"{count:,} {doing.value}" for doing, count in sorted(verdict.doing.items(), key=lambda i: -i[1]))
    yield f"{verdict.isa} {verdict.provider}: {verdict.encodings:,} encodings: {done or 'none'}"
    rows = len(verdict.rows)
    yield (
        f"  {rows - len(verdict.unreached)} of {rows} rows reached; {disagreeing(verdict):,} encodings disagree with "
        f"capstone, and {exempted(verdict):,} for {len(verdict.exempted)} known reasons"
    )
    for row in verdict.unreached:
        yield f"  row '{row}' is never reached: the rows before it match all its encodings"
    for exemption in verdict.unused:
        yield f"  unused exemption of {', '.join(exemption.rows)}: {exemption.why}"
    for disagreement in verdict.disagreements[:_SHOWN]:
        yield f"  {disagreement}"
    if len(verdict.disagreements) > _SHOWN:
        yield f"  and {len(verdict.disagreements) - _SHOWN} more kinds"


def exempted(verdict: Verdict) -> int:
    """Count encodings that disagree and are exempted."""
    return verdict.exempted.total()


def disagreeing(verdict: Verdict) -> int:
    """Count encodings that disagree and are not exempted."""
    return sum(disagreement.count for disagreement in verdict.disagreements)


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data."""
    return {
        "isa": verdict.isa,
        "provider": verdict.provider,
        "right": verdict.right,
        "encodings": verdict.encodings,
        "doing": {doing.value: count for doing, count in verdict.doing.items()},
        "rows": dict(verdict.rows),
        "unreached": list(verdict.unreached),
        "exempted": [
            {"rows": list(exemption.rows), "mask": f"{exemption.mask:#x}", "value": f"{exemption.value:#x}",
             "capstone": sorted(exemption.names), "why": exemption.why, "encodings": count}
            for exemption, count in verdict.exempted.items()
        ],
        "disagreements": [
            {"encoding": one.encoding.hex(), "encodings": one.count, "ours": one.ours, "theirs": one.theirs,
             "text": one.text} for one in verdict.disagreements
        ],
    }  # fmt: skip
