"""The words and numbers that all forms of the report share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from emu.engine.qemu.block_layout import reason
from emu.isa import ISAS, Isa, disassembly
from emu.isa.disassembly import Syntax
from emu.support.did_you_mean import counted
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.results import RunResult, Tally
from trapline.lab.check.site.compare import ELSEWHERE, MACHINE_CODE, Divergence, Outcome, SiteResult

MEANING: Final[Mapping[Outcome, str]] = {
    Outcome.AGREED: "the same with and without a probe, in every state",
    Outcome.DIVERGED: "not the same with a probe",
    Outcome.REFUSED: "no probe is allowed there",
    Outcome.UNREPEATABLE: "the instruction itself does not give the same result twice",
    Outcome.CRASHED: "the CPU emulator crashed",
    Outcome.FAILED: "the rules under test raised an exception",
}
# The number of shown bytes of an instruction that cannot be decoded.
_LAST: Final = 16


class Trouble(NamedTuple):
    """A site that diverged or crashed."""

    file: str
    provider: str
    result: SiteResult
    code: bytes
    """The bytes of only the instruction."""
    instruction: str
    """The disassembly; "(no instruction)" if there is none."""

    @property
    def site(self) -> CheckSite:
        """The site."""
        return self.result.site

    @property
    def title(self) -> str:
        """The name, the address, and the probe's name if it has one."""
        where = "" if not self.site.function else f" at {self.site.address:#x}"
        return f"{self.site.name}{where}" + (f", {self.site.probe}" if self.site.probe else "")


class EncodingsSummary(NamedTuple):
    """The result of a check of a decode table."""

    title: str
    encodings: int
    classes: tuple[tuple[str, int], ...]
    """The number of encodings by the way in which they are displaced."""
    disagreements: tuple[str, ...]
    unreached: tuple[str, ...]
    """Rows of the table that no encoding reaches."""

    @property
    def same(self) -> bool:
        """Return whether everything agrees."""
        return not (self.disagreements or self.unreached)


def verdict(tally: Tally) -> str:
    """Return one line: whether the patched program behaves the same, and the parts that do not."""
    if tally.empty:
        return "nothing was checked"
    looked = ", ".join(_looked(tally))
    if tally.same:
        return f"same: {looked}"
    wrong = ", ".join(_wrong(tally))
    idle = sum(not run.proves for run in tally.runs)
    if idle:
        silent = f"no probe fired in {counted(idle, 'run')}"
        return f"NOT the same: {wrong}, and {silent}; of {looked}" if wrong else f"not proven: {silent}; of {looked}"
    return f"NOT the same: {wrong}; of {looked}"


def _looked(tally: Tally) -> Iterator[str]:
    if tally.sites:
        yield f"{counted(tally.sites, 'site')} ({counted(tally.states, 'site-state')})"
    if tally.runs:
        yield counted(len(tally.runs), "run")
    if tally.encodings:
        yield counted(sum(one.encodings for one in encodings(tally)), "encoding")


def _wrong(tally: Tally) -> Iterator[str]:
    outcomes = [trouble[2].outcome for trouble in tally.trouble]
    if diverged := outcomes.count(Outcome.DIVERGED):
        yield f"{counted(diverged, 'site')} diverged"
    if crashed := outcomes.count(Outcome.CRASHED):
        yield f"{counted(crashed, 'site')} crashed the emulator"
    if failed := outcomes.count(Outcome.FAILED):
        yield f"the rules failed at {counted(failed, 'site')}"
    if runs := sum(not run.same for run in tally.runs):
        yield f"{counted(runs, 'run')} differed"
    if tables := sum(not one.same for one in encodings(tally)):
        yield f"{counted(tables, 'decode table')} wrong"


def run_verdict(run: RunResult) -> str:
    """Return what two runs of a program have shown."""
    if not run.same:
        return "NOT the same"
    return "same" if run.fired else "same, but no probe fired"


def rate(tally: Tally) -> str:
    """Return the speed of this run; "" if it compared nothing itself."""
    if not tally.fresh or not tally.seconds:
        return ""
    rate = f"{tally.fresh:,} site-states in {tally.seconds:,.1f} s, {tally.fresh / tally.seconds:,.0f} per second"
    total = tally.executed.total()
    if not total:
        return rate
    why = f": {reason()} (trapline doctor)" if reason() else ""
    elsewhere = tally.executed[ELSEWHERE]
    natively = f"{(tally.executed[MACHINE_CODE] + elsewhere) / total:.0%} tried by machine code{why}"
    equal = f", {elsewhere / total:.0%} at another site with the same instruction" if elsewhere else ""
    return f"{rate}; {natively}{equal}"


def troubles(tally: Tally) -> list[Trouble]:
    """Return the sites that diverged or crashed."""
    return list(_troubles(tally))


def _troubles(tally: Tally) -> Iterator[Trouble]:
    isas = {one["path"]: one["isa"] for one in tally.spec.get("programs", ())}
    for file, provider, result in tally.trouble:
        isa = ISAS[isas[file]] if file in isas else None
        code, instruction = disassembled(isa, result.site, tally.syntax)
        yield Trouble(file, provider, result, code, instruction)


def disassembled(isa: Isa | None, site: CheckSite, syntax: Syntax) -> tuple[bytes, str]:
    """Return an instruction's own bytes, and its text."""
    found = None if isa is None else disassembly.first(isa, site.code, site.address, syntax)
    if found is not None:
        return site.code[: found.size], found.text
    return site.code[: isa.instruction_alignment if isa else _LAST], disassembly.NO_INSTRUCTION


def state_words(divergence: Divergence) -> list[tuple[str, str]]:
    """Return the relevant parts of the smallest state: registers that are not zero, flags, vectors."""
    state = divergence.state
    words = [(name, f"{value:#x}") for name, value in state.registers.items() if value]
    if state.flags:
        words.append(("flags", f"{state.flags:#x}"))
    if state.vectors:
        words.append(("vectors", f"random, seed {state.vectors}"))
    return words


def encodings(tally: Tally) -> list[EncodingsSummary]:
    """Return the sweeps of decode tables."""
    return [
        EncodingsSummary(
            f"{one['isa']} {one['provider']}",
            int(one.get("encodings", 0)),
            tuple(_classes(one.get("classes", one.get("doing", {})))),
            tuple(_lines(one["disagreements"])),
            tuple(_lines(one["unreached"])),
        )
        for one in tally.encodings
    ]


def _classes(found: Any) -> Iterator[tuple[str, int]]:
    if isinstance(found, Mapping):
        yield from sorted(found.items(), key=lambda item: -item[1])
    elif found:
        yield "classes", int(found)


def _lines(found: Any) -> Iterator[str]:
    """Yield a line for each element of a list; one line if there is only their number."""
    if isinstance(found, int):
        if found:
            yield f"{found:,} of them"
        return
    for one in found:
        yield ", ".join(f"{key} {value}" for key, value in one.items()) if isinstance(one, Mapping) else str(one)
