"""Asking the rules themselves, one encoding at a time: those of x86-64 and i386, which are code, and somebody's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from emu.displaced import DisplacedTable, Plan, Treatment
from emu.isa import ISAS
from providers import fasttrap, uprobes
from providers.fasttrap import Fidelity
from providers.fasttrap.port import Code, Emulated, OutOfLine
from providers.fasttrap.port import Port as FasttrapPort
from providers.uprobes.port import Port as UprobesPort
from providers.uprobes.port import Refused, Simulated, SingleStepped
from trapline.lab.check.encodings.decoder import NOTHING_DECODED, Decoded, Facts, decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import Cell, Doing, Ours
from trapline.lab.check.encodings.space import FORMS
from trapline.lab.check.encodings.tables import emulated_facts, plan_facts
from trapline.lab.check.rules import Rules

# Row, what is done, length in bytes or 0, and what it claims or None.
Said = tuple[str, Doing, int, Facts | None]
# What a provider says of the instruction that starts some bytes.
Opinion = Callable[[bytes], Said]

BY_REGISTER: Final = ", by a register"
AWAY: Final = ", goes away"
# Uprobes' reason for many opcodes, each of which it names.
BAD_OPCODE: Final = "opcode xx is in the table of those that cannot be probed"


def own(isa: str) -> Mapping[str, Opinion]:
    """Return what the package's own rules say on an x86."""
    return {
        "fbt": of_table(isa, ISAS[isa].stub),
        "pid": of_fasttrap(isa, fasttrap.PORTS[isa], Fidelity.EXACT),
        "pid:freebsd": of_fasttrap(isa, fasttrap.PORTS[isa], Fidelity.FREEBSD),
        "uprobe": of_uprobes(isa, uprobes.PORTS[isa]),
    }


def of_rules(isa: str, rules: Rules) -> Mapping[str, Opinion]:
    """Return what somebody's rules say, by provider; only those that are somebody's."""
    found: dict[str, Opinion] = {}
    if rules.displaced is not None:
        found["fbt"] = of_table(isa, rules.displaced)
    if rules.pid is not None:
        found["pid"] = of_fasttrap(isa, rules.pid, rules.pid_fidelity)
    if rules.uprobe is not None:
        found["uprobe"] = of_uprobes(isa, rules.uprobe)
    return found


def _plan_facts(isa: str, plan: Plan, length: int) -> Facts | None:
    """Return what a plan does; None where that says too little.

    With register 0 as its operand, or a distance of nothing, an instruction does less than its
    like.  The encodings that are walked by class have no such operands; elsewhere there are all.
    """
    return None if isa in FORMS else plan_facts(plan, ISAS[isa].registers.pc, length)


def of_table(isa: str, table: DisplacedTable) -> Opinion:
    """Ask a table: FBT's stub."""

    @cache
    def claims(number: int) -> Facts:
        return emulated_facts(isa, table.rows, number)

    numbers = {id(row): number for number, row in enumerate(table.rows)}

    def say(code: bytes) -> Said:
        row, plan = table.decide(code, 0)
        if row.what is Treatment.OUT_OF_LINE:
            return row.name, Doing.OUT_OF_LINE, row.length, Facts.NONE
        if plan is None:
            return row.name, Doing.REFUSED, row.length, None
        facts = claims(numbers[id(row)]) if isa in FORMS else _plan_facts(isa, plan, row.length)
        return row.name, Doing.EMULATED, row.length, facts

    return say


def of_fasttrap(isa: str, port: FasttrapPort, fidelity: Fidelity) -> Opinion:
    """Ask fasttrap: the pid provider and USDT."""

    def say(code: bytes) -> Said:
        match port.treat(Code(code, 0), fidelity):
            case Emulated(kind, length, plan):
                return kind, Doing.EMULATED, length, _plan_facts(isa, plan, length)
            case OutOfLine(length, copy, scratch):
                name = "C_COMMON" if isa in FORMS and len(copy) == 2 else "COMMON"
                facts = Facts.RELATIVE if scratch else Facts.NONE
                return name + bool(scratch) * BY_REGISTER, Doing.OUT_OF_LINE, length, facts
            case refused:
                return refused.why, Doing.REFUSED, 0, None

    return say


def of_uprobes(isa: str, port: UprobesPort) -> Opinion:
    """Ask uprobes."""
    step = "anything else" if isa in FORMS else "stepped"

    def say(code: bytes) -> Said:
        match port.analyze(code, 0):
            case Simulated(name, length, plan):
                return name, Doing.EMULATED, length, _plan_facts(isa, plan, length)
            case SingleStepped(length, copy, scratch, absolute):
                kind = ", compressed" if isa in FORMS and len(copy) == 2 else ""
                name = step + kind + absolute * AWAY + bool(scratch) * BY_REGISTER
                facts = (Facts.CONTROL if absolute else Facts.NONE) | (Facts.RELATIVE if scratch else Facts.NONE)
                return name, Doing.OUT_OF_LINE, length, facts
            case Refused(_, why):
                return BAD_OPCODE if why.startswith("opcode ") else why, Doing.REFUSED, 0, None

    return say


@cache
def _candidates(isa: str, provider: str, row: str, name: str) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (index, one.mask, one.value)
        for index, one in enumerate(EXEMPTIONS[isa])
        if provider in one.providers and row in one.rows and name in one.names
    )


def _exemption(isa: str, provider: str, row: str, name: str, code: bytes) -> int:
    candidates = _candidates(isa, provider, row, name)
    if not candidates:
        return -1
    word = int.from_bytes(code[:8], "little")
    return next((index for index, mask, value in candidates if word & mask == value), -1)


def _theirs(isa: str, code: bytes) -> Decoded:
    other = decoder(isa)
    return other.facts(other.number, other.bits) if other.decode(code) else NOTHING_DECODED


def _asked(say: Opinion, code: bytes) -> Said:
    try:
        return say(code)
    except Exception as error:  # noqa: BLE001  whatever rules raise is a finding of this check
        return f"{type(error).__name__}: {error}", Doing.FAILED, 0, None


def count(isa: str, opinions: Mapping[str, Opinion], codes: Iterable[bytes]) -> Iterator[Cell]:
    """Count encodings one by one, by what is said of them."""
    # Facts are looked up by identity: there is one of each, and hashing an enum is slow.
    counts: Counter[tuple[object, ...]] = Counter()
    cells: dict[tuple[object, ...], Cell] = {}
    for code in codes:
        theirs = _theirs(isa, code)
        ours = [(provider, *_asked(say, code)) for provider, say in opinions.items()]
        exempt = [_exemption(isa, provider, row, theirs.name, code) for provider, row, *_ in ours]
        key = (
            theirs.name, theirs.length, id(theirs.facts), *exempt,
            *((row, length, id(facts)) for _, row, _, length, facts in ours),
        )  # fmt: skip
        counts[key] += 1
        if counts[key] == 1:
            said = tuple(Ours(*one, exemption) for one, exemption in zip(ours, exempt, strict=True))
            cells[key] = Cell(said, theirs, 1, code)
    return (cell._replace(encodings=counts[key]) for key, cell in cells.items())
