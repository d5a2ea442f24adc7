"""The decision of one instruction under each provider, as data and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from emu.displaced.decision import ALWAYS, Code, Decision, Emulated, OutOfLine, Refused, Rule, Stepped
from emu.isa import disassembly
from emu.isa.base import Isa
from emu.isa.disassembly import Syntax
from providers import fasttrap, fbt, kinst, uprobes
from providers.fbt.port import Function, ScanResult
from providers.fidelity import Fidelity
from providers.sequences import REACH

# Bytes that the longest instruction has at most.
LONGEST: Final = 16
_NAME: Final = "snippet"
_TITLES: Final = {Fidelity.EXACT: "exact", Fidelity.FREEBSD: "FreeBSD", Fidelity.LINUX: "Linux"}
PROVIDERS: Final = frozenset({"fbt", "pid", "uprobe", "kinst"})
NOT_A_SITE: Final = Rule(
    "not a site", "FBT probes only the entry and the returns of a function", "FreeBSD sys/cddl/dev/fbt/fbt.c"
)
_NO_FUNCTION: Final = "in this text there is no probe: kinst takes only functions whose entry or return FBT finds"


@dataclass(frozen=True, slots=True)
class Copy:
    """The code that runs elsewhere instead of the instruction."""

    code: str
    """Its bytes, in hexadecimal, as they are before addresses are filled in."""
    text: str
    relocation: str
    """The changes in it, in words; "" where it is the instruction as it was."""


@dataclass(frozen=True, slots=True)
class ProviderDecision:
    """The decision of an instruction by one provider."""

    provider: str
    """fbt, pid, uprobe, kinst."""
    what: str
    """emulated, out of line, single-stepped, refused, or `not a site` (FBT)."""
    how: str
    """The plan in words, the copy, or the reason."""
    rule: str
    """The name of the rule that decides."""
    why: str
    source: str
    patch: str
    """The bytes that are written over the instruction, in hexadecimal; "" for none."""
    plan: tuple[str, ...] = ()
    """The operations of the plan."""
    copy: Copy | None = None
    errno: int = 0
    """The error number that a refusal gives to programs."""
    probe: str = ""
    """FBT's probe there: entry or return."""
    quirk: str = ""
    """The difference of the real system from the CPU, in words."""
    differs: tuple[str, ...] = ()
    """What the real systems do otherwise, and what the exact rules do, a sentence each."""


class Piece(NamedTuple):
    """An instruction before any provider has seen it."""

    address: int
    data: bytes
    text: str
    written: str


class Snippet(NamedTuple):
    """The code that contains instructions, as a function of its own."""

    isa: Isa
    body: bytes
    address: int
    syntax: Syntax
    fidelity: Fidelity

    def function(self) -> Function:
        """Return it as FBT sees it."""
        beyond = fbt.PORTS[self.isa.name].lookahead + LONGEST
        return Function(_NAME, self.address, len(self.body), self.body + bytes(beyond), self.fidelity)

    def code(self, piece: Piece) -> Code:
        """Return an instruction with the code around it."""
        at = piece.address - self.address
        return Code.at(self.body, at, piece.address, longest=LONGEST, around=REACH)


def decisions(snippet: Snippet, piece: Piece, scan: ScanResult) -> Iterator[ProviderDecision]:
    """Yield what each provider does with an instruction, FBT first."""
    isa, code = snippet.isa, snippet.code(piece)
    user, task, kernel = fasttrap.PORTS[isa.name], uprobes.PORTS[isa.name], kinst.PORTS.get(isa.name)
    yield _fbt(snippet, piece, scan)
    yield _systems(snippet, piece, "pid", user.breakpoint(len(piece.data)), lambda one: user.treat(code, one))
    yield _systems(snippet, piece, "uprobe", task.breakpoint, lambda one: task.treat(code, one))
    if kernel is not None:
        decision = _decision(snippet, piece, "kinst", kernel.patch(len(piece.data)), kernel.treat(code))
        yield decision if scan.sites else replace(decision, differs=(_NO_FUNCTION,))


def _systems(
    snippet: Snippet, piece: Piece, provider: str, patch: bytes, treat: Callable[[Fidelity], Decision]
) -> ProviderDecision:
    """Return a decision, and what the others do otherwise: the real systems, or the exact rules."""
    told = {one: _decision(snippet, piece, provider, patch, treat(one)) for one in Fidelity}
    done = {one: (decision.what, decision.how) for one, decision in told.items()}
    # A system without this provider decides as the exact rules do; it is not named.
    others = [one for one in Fidelity if one is Fidelity.EXACT or done[one] != done[Fidelity.EXACT]]
    own = snippet.fidelity
    differs = tuple(f"{_TITLES[one]}: {', '.join(done[one])}" for one in others if done[one] != done[own])
    return replace(told[own], differs=differs)


def _fbt(snippet: Snippet, piece: Piece, scan: ScanResult) -> ProviderDecision:
    """Return FBT's decision; its stub may emulate what is not a site (kinst uses it)."""
    port = fbt.PORTS[snippet.isa.name]
    decision = snippet.isa.stub.decide(piece.data.ljust(8, b"\0"), piece.address)
    remarks = {one.address: one.rule for one in port.remarks(snippet.function(), scan)} if scan.sites else {}
    remark = remarks.get(piece.address)
    site = next((one for one in scan.sites if one.address == piece.address), None)
    if site is not None:
        found = _decision(snippet, piece, "fbt", site.patch, decision)
        told = (f"FreeBSD probes it all the same: {remark.why}",) if remark else ()
        return replace(found, probe=site.probe, differs=told)
    rule = remark or (scan.refusal.rule if scan.refusal else NOT_A_SITE)
    stub = f"; its stub emulates it: {decision.plan}" if isinstance(decision, Emulated) else ""
    plan = _operations(decision)
    return ProviderDecision("fbt", "not a site", f"{rule.why}{stub}", rule.name, rule.why, rule.source, "", plan)


def _operations(decision: Decision) -> tuple[str, ...]:
    return tuple(map(str, decision.plan.operations)) if isinstance(decision, Emulated) else ()


def _decision(snippet: Snippet, piece: Piece, provider: str, patch: bytes, decision: Decision) -> ProviderDecision:
    rule, copy, errno = decision.rule, None, 0
    match decision:
        case Refused():
            what, how, patch, errno = "refused", rule.why, b"", rule.errno
        case Emulated(_, _, plan):
            what, how = "emulated", str(plan)
        case OutOfLine() | Stepped():
            what = "single-stepped" if isinstance(decision, Stepped) else "out of line"
            copy = _copy(snippet, piece, decision)
            how = f"a copy, {copy.relocation}" if copy.relocation else "a copy"
    return ProviderDecision(
        provider, what, how, rule.name, rule.why, rule.source, patch.hex(), _operations(decision), copy, errno,
        quirk=rule.quirk,
    )  # fmt: skip


def _copy(snippet: Snippet, piece: Piece, decision: OutOfLine | Stepped) -> Copy:
    """Return the copy, and its relocations in words."""
    told = disassembly.first(snippet.isa, decision.code, piece.address, snippet.syntax)
    words = []
    if decision.code != piece.data[: len(decision.code)] or len(decision.code) != len(piece.data):
        words.append(f"rewritten as {decision.code.hex()}")
    if decision.scratch:
        words.append(f"{decision.scratch} = {piece.address + decision.length:#x}, the next address, while it runs")
    if isinstance(decision, OutOfLine):
        if decision.place >= 0:
            target = piece.address + decision.target & snippet.isa.address_mask
            last = decision.place + 3
            words.append(f"bytes {decision.place} to {last} become the distance from the copy to {target:#x}")
        if decision.leaves is not None:
            words.append("it does not come back" if decision.leaves == ALWAYS else "it leaves if its condition holds")
    else:
        fixes = (
            (decision.absolute, "the pc is right after the step"),
            (decision.calls, "the return address that it pushes is corrected"),
            (decision.pushes_flags, "the trap flag is cleared in the flags that it pushes"),
            (decision.pops_flags, "the trap flag is the one that it pops"),
        )
        words += [text for holds, text in fixes if holds]
    return Copy(decision.code.hex(), told.text if told else disassembly.NO_INSTRUCTION, ", ".join(words))
