"""Judging by the cells of many chunks whether a provider's table on an ISA is correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trapline.lab.check.cpu.rules_under_test import load_rules
from trapline.lab.check.encodings import x86
from trapline.lab.check.encodings.decoder import Decoded, decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS, Exemption
from trapline.lab.check.encodings.results import Cell, ChunkResult, Doing, Ours, merge
from trapline.lab.check.encodings.space import FORMS
from trapline.lab.check.encodings.tables import tables


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Encodings on which the table and capstone differ without an exemption."""

    encoding: bytes
    """The first of them."""
    count: int
    ours: str
    theirs: str
    text: str
    """Capstone's text of the encoding."""

    def __str__(self) -> str:
        others = f" and {self.count - 1:,} more" if self.count > 1 else ""
        return f"{self.encoding.hex(' ')}{others}: {self.text or 'no instruction'}: {self.ours}; {self.theirs}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One provider on one ISA."""

    isa: str
    provider: str
    encodings: int
    doing: Counter[Doing]
    """Number of encodings by decision."""
    rows: Counter[str]
    """Number of encodings by row; it has every row of the table."""
    exempted: Counter[Exemption]
    """Number of exempted encodings; it has every exemption of the provider."""
    disagreements: tuple[Disagreement, ...]

    @property
    def unreached(self) -> tuple[str, ...]:
        """Rows that no encoding reached, because rows before them match first."""
        return tuple(row for row, count in self.rows.items() if not count)

    @property
    def unused(self) -> tuple[Exemption, ...]:
        """Exemptions that no encoding needed."""
        return tuple(exemption for exemption, count in self.exempted.items() if not count)

    @property
    def right(self) -> bool:
        """Whether every row was reached, and everything agrees or is exempted with need."""
        return not (self.unreached or self.unused or self.disagreements)


def rows(isa: str, provider: str, rules: str = "") -> tuple[str, ...]:
    """Return the names of a table's rows; the user's rules that are code have none."""
    if rules:
        displaced = load_rules(rules).displaced
        return tuple(row.name for row in displaced.rows) if displaced and provider == "fbt" else ()
    if isa in FORMS:
        return tuple(row.name for row in tables(isa)[provider])
    return x86.ROWS[isa][provider]


def agree(ours: Ours, theirs: Decoded) -> bool:
    """Return whether capstone confirms a row.

    Capstone has no facts for an encoding that it does not decode; refusing that one is always
    correct.
    """
    if ours.doing is Doing.FAILED:
        return False
    if not theirs.name:
        return ours.doing is Doing.REFUSED
    return ours.facts is None or (ours.facts == theirs.facts and ours.length in (0, theirs.length))


def _exempted(ours: Ours, theirs: Decoded, isa: str) -> Exemption | None:
    if ours.exemption < 0:
        return None
    exemption = EXEMPTIONS[isa][ours.exemption]
    same_length = exemption.lengths or not theirs.name or ours.length == theirs.length
    named = ours.row in exemption.rows and exemption.names_it(theirs.name)
    return exemption if named and same_length and theirs.differs(ours.facts) == exemption.differs else None


def judge(isa: str, provider: str, results: Iterable[ChunkResult]) -> Verdict:
    """Judge a provider's table by the classified chunks.

    For a user's rules, unused exemptions are not reported.
    """
    results = tuple(results)
    rules = next((result.chunk.rules for result in results), "")
    doing: Counter[Doing] = Counter()
    reached: Counter[str] = Counter(dict.fromkeys(rows(isa, provider, rules), 0))
    expected = () if rules else (one for one in EXEMPTIONS[isa] if provider in one.providers)
    exempted: Counter[Exemption] = Counter(dict.fromkeys(expected, 0))
    wrong: list[Cell] = []
    for cell in merge(cell for result in results for cell in result.cells):
        ours = next(one for one in cell.ours if one.provider == provider)
        doing[ours.doing] += cell.encodings
        reached[ours.row] += cell.encodings
        if agree(ours, cell.theirs):
            continue
        exemption = _exempted(ours, cell.theirs, isa)
        if exemption is None:
            wrong.append(cell._replace(ours=(ours,)))
        else:
            exempted[exemption] += cell.encodings
    disagreements = tuple(_told(isa, cell) for cell in merge(wrong))
    return Verdict(isa, provider, doing.total(), doing, reached, exempted, disagreements)


def unreached(isa: str, provider: str, results: Iterable[ChunkResult]) -> tuple[str, ...]:
    """Return the rows of a provider's table that no encoding reached."""
    return judge(isa, provider, results).unreached


def _told(isa: str, cell: Cell) -> Disagreement:
    (ours,) = cell.ours
    other = decoder(isa)
    text = other.text if other.decode(cell.example) else ""
    length = f", {ours.length} bytes" if ours.length else ""
    claim = "" if ours.facts is None else f" as {ours.facts}"
    return Disagreement(
        cell.example,
        cell.encodings,
        f"ours, {ours.row}{length}: {ours.doing.value}{claim}",
        f"capstone, {cell.theirs.length} bytes: {cell.theirs.facts}" if cell.theirs.name else "capstone: nothing",
        text,
    )
