"""Applying the rules to one encoding after another.

This is for rules that are code: those of x86-64 and i386, and those of users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from emu.displaced.decision import Code, Decision, DisplacedTable, Emulated, OutOfLine, Refused, Stepped
from emu.displaced.plans import Plan
from emu.isa import ISAS
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.encodings.decoder import NOTHING_DECODED, Decoded, Facts, decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import Cell, Doing, Ours
from trapline.lab.check.encodings.space import FORMS
from trapline.lab.check.encodings.tables import PROVIDERS, emulated_facts, plan_facts

# Capstone ends these instructions of x86 before their operands.
_WITHOUT_OPERANDS: Final = frozenset({"ud0", "ud1"})
# Row, decision, length in bytes or 0, and its claimed facts or None.
Said = tuple[str, Doing, int, Facts | None]
# A provider's decision about the instruction that starts some bytes.
Opinion = Callable[[bytes], Said]


def own(isa: str) -> Mapping[str, Opinion]:
    """Return the functions of the package's own rules for an x86 ISA."""
    pid, uprobe = fasttrap.PORTS[isa].treat, uprobes.PORTS[isa].treat
    opinions = (
        of_table(isa, ISAS[isa].stub),
        of_decisions(isa, lambda code: pid(Code(code, 0), Fidelity.EXACT)),
        of_decisions(isa, lambda code: pid(Code(code, 0), Fidelity.FREEBSD)),
        of_decisions(isa, lambda code: uprobe(Code(code, 0), Fidelity.EXACT)),
    )
    return dict(zip(PROVIDERS, opinions, strict=True))


def of_rules(isa: str, rules: Rules) -> Mapping[str, Opinion]:
    """Return the functions of the user's rules, by provider."""
    found: dict[str, Opinion] = {}
    if rules.displaced is not None:
        found["fbt"] = of_table(isa, rules.displaced)
    if rules.pid is not None:
        pid = rules.pid.treat
        found["pid"] = of_decisions(isa, lambda code: pid(Code(code, 0), rules.fidelity))
    if rules.uprobe is not None:
        uprobe = rules.uprobe.treat
        found["uprobe"] = of_decisions(isa, lambda code: uprobe(Code(code, 0), rules.fidelity))
    return found


def _plan_facts(isa: str, plan: Plan, length: int) -> Facts | None:
    """Return the facts of a plan; None if these are not representative.

    With register 0 as its operand, or a distance of 0, an instruction does less than others of its
    kind.  The encodings that are enumerated by class have no such operands; the others have all.
    """
    return None if isa in FORMS else plan_facts(plan, ISAS[isa].registers.pc, length)


def of_table(isa: str, table: DisplacedTable) -> Opinion:
    """Return the decision of a table, FBT's stub."""

    @cache
    def claims(number: int) -> Facts:
        return emulated_facts(isa, table.rows, number)

    numbers = {id(row): number for number, row in enumerate(table.rows)}
    said = of_decisions(isa, lambda code: table.decide(code, 0))

    def say(code: bytes) -> Said:
        name, doing, length, facts = said(code)
        decision = table.decide(code, 0)
        if isinstance(decision, Emulated) and isa in FORMS:
            facts = claims(numbers[id(decision.rule)])
        return name, doing, length, facts

    return say


def of_decisions(isa: str, treat: Callable[[bytes], Decision]) -> Opinion:
    """Return the decision of a provider's rules."""

    def say(code: bytes) -> Said:
        match treat(code):
            case Emulated(rule, length, plan):
                return rule.name, Doing.EMULATED, length, _plan_facts(isa, plan, length)
            case OutOfLine(rule, length, _, scratch):
                return rule.name, Doing.OUT_OF_LINE, length, Facts.RELATIVE if scratch else Facts.NONE
            case Stepped(rule, length, _, scratch, absolute):
                facts = (Facts.CONTROL if absolute else Facts.NONE) | (Facts.RELATIVE if scratch else Facts.NONE)
                return rule.name, Doing.OUT_OF_LINE, length, facts
            case Refused(rule):
                return rule.name, Doing.REFUSED, 0, None

    return say


@cache
def _candidates(isa: str, provider: str, row: str, name: str, differs: Facts) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (index, one.mask, one.value)
        for index, one in enumerate(EXEMPTIONS[isa])
        if provider in one.providers and row in one.rows and one.names_it(name) and one.differs == differs
    )


def _exemption(isa: str, provider: str, row: str, facts: Facts | None, theirs: Decoded, code: bytes) -> int:
    candidates = _candidates(isa, provider, row, theirs.name, theirs.differs(facts))
    if not candidates:
        return -1
    word = int.from_bytes(code[:8], "little")
    return next((index for index, mask, value in candidates if word & mask == value), -1)


def _theirs(isa: str, code: bytes) -> Decoded:
    other = decoder(isa)
    found = other.facts(other.number, other.bits) if other.decode(code) else NOTHING_DECODED
    return NOTHING_DECODED if found.name in _WITHOUT_OPERANDS else found


def _asked(say: Opinion, code: bytes) -> Said:
    try:
        return say(code)
    except Exception as error:  # noqa: BLE001  whatever rules raise is a finding of this check
        return f"{type(error).__name__}: {error}", Doing.FAILED, 0, None


def count(isa: str, opinions: Mapping[str, Opinion], codes: Iterable[bytes]) -> Iterator[Cell]:
    """Count encodings one by one, by the decisions about them."""
    # Facts are looked up by identity: there is one of each, and hashing an enum is slow.
    counts: Counter[tuple[object, ...]] = Counter()
    cells: dict[tuple[object, ...], Cell] = {}
    for code in codes:
        theirs = _theirs(isa, code)
        ours = [(provider, *_asked(say, code)) for provider, say in opinions.items()]
        exempt = [_exemption(isa, provider, row, facts, theirs, code) for provider, row, _, _, facts in ours]
        key = (
            theirs.name, theirs.length, id(theirs.facts), *exempt,
            *((row, length, id(facts)) for _, row, _, length, facts in ours),
        )  # fmt: skip
        counts[key] += 1
        if counts[key] == 1:
            said = tuple(Ours(*one, exemption) for one, exemption in zip(ours, exempt, strict=True))
            cells[key] = Cell(said, theirs, 1, code)
    return (cell._replace(encodings=counts[key]) for key, cell in cells.items())
