"""Results as tables, for the terminal, the page and the legends of the plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from trapline.cost.models import CostModel, of_isa
from trapline.cost.rows import Part, Row

_SHORT: Final = {Part.ENTRY: "entry", Part.DISPLACED: "displaced"}
_LEADING: Final = ("ISA", "mechanism", "probe")
_TRAPLESS: Final = "no trap"
# The text for what the emulator does in place of the guest's kernel.
NOT_MODELLED: Final = "n/m"

_HIT_NOTES: Final = (
    "Parts are those of one recorded hit.  Instructions and exceptions are counted in whole runs,",
    "beside runs with another probe enabled.",
    "D is instructions of D's virtual machine.  Handlers and D are the emulator, not the guest.",
    "n/m: not modelled.  On the host path, of profile, and for programs on Linux, the kernel is the emulator,",
    "too: only instructions of the program count, such as a copy.  --host measures this host's kernel.",
    "Cache lines (64 bytes) and pages (entries of a TLB) are those that code and accesses touch,",
    "without the probe's own place.",
    "SDT of 2013 and 2018 and syscall: the instructions that a call does not execute beside another",
    "probe, also in front of the call of dtrace_probe() and behind it.",
    "SDT of 2024: the parts have the nops of the site more, which a jump replaces.",
)
_IDLE_NOTES: Final = (
    "code: bytes at each place.  At rest, elsewhere, firing: instructions of each pass, where no",
    "probe, another one, this one is enabled.",
    "SDT at rest: beside a kernel without static probes; what the compiler does around a site counts.",
    "-: it cannot be measured, because there is no kernel without the mechanism.",
    "Nanoseconds are a model's: the exceptions with the prices of a real machine, on bare metal",
    "(trapline/cost/models.toml).  In a virtual machine they can be twenty times as many: --host measures this host.",
)


class Table(NamedTuple):
    """A table; the first `texts` columns are texts, and so is the last if `prose`."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()
    texts: int = len(_LEADING)
    prose: bool = False

    def is_text(self, column: int) -> bool:
        """Return whether a column is aligned as text."""
        return column < self.texts or (self.prose and column == len(self.head) - 1)


def number(value: float | None) -> str:
    """Return a count with at most one decimal; "-" for one that cannot be measured."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def firing(row: Row) -> str:
    """Return the instructions of a hit."""
    return number(row.instructions) if row.modelled else NOT_MODELLED


def _part(row: Row, part: Part) -> str:
    """Return the instructions of a part; a displaced instruction may run in the program itself."""
    count = row.anatomy.parts.get(part, 0)
    return number(count) if row.modelled or (count and part is Part.DISPLACED) else NOT_MODELLED


def hits(rows: Sequence[Row]) -> Table:
    """Return the table of a hit's instructions, by part."""
    head = (*_LEADING, *(_SHORT.get(part, part.value) for part in Part), "instructions", "D", "exceptions")
    return Table(
        "One hit",
        (*head, "accesses", "cache lines", "pages"),
        [
            (
                row.isa,
                row.mechanism,
                row.what,
                *(_part(row, part) for part in Part),
                firing(row),
                number(row.anatomy.dif),
                number(row.exceptions),
                *(
                    number(count) if row.modelled else NOT_MODELLED
                    for count in (row.anatomy.accesses, row.anatomy.lines, row.anatomy.pages)
                ),
            )
            for row in rows
        ],
        _HIT_NOTES,
    )


def idle(rows: Sequence[Row], machines: Sequence[CostModel]) -> Table:
    """Return the cost of probes at rest, elsewhere and in a hit, and the prices by the models."""
    return Table(
        "At rest, enabled elsewhere, firing",
        (*_LEADING, "code", "at rest", "elsewhere", "firing", "on bare metal, by the model"),
        [
            (
                row.isa,
                row.mechanism,
                row.what,
                number(row.idle.code),
                number(row.idle.rest),
                number(row.idle.elsewhere),
                firing(row),
                _predicted(row, machines),
            )
            for row in rows
        ],
        _IDLE_NOTES,
        prose=True,
    )


def _predicted(row: Row, machines: Sequence[CostModel]) -> str:
    if not row.events.exceptions and not row.events.jumps:
        return _TRAPLESS
    found = [machine.price(row.events) for machine in of_isa(machines, row.isa) if machine.knows(row.events)]
    return ", ".join(found) or "no figures of this ISA are published"


def models(machines: Sequence[CostModel]) -> Table:
    """Return the predictions of the models beside the published figures."""
    return Table(
        "Predicted beside measured",
        ("model", "machine", "what", "measured ns", "predicted ns", "off"),
        [
            (
                machine.name,
                machine.title,
                check.what,
                number(check.measured),
                number(machine.published(check.events)),
                f"{machine.published(check.events) / check.measured - 1:+.1%}",
            )
            for machine in machines
            for check in machine.checks
        ],
        ("These figures were not used to make the models.  `trapline bench --models` names the sources.",),
    )


def lines(table: Table) -> Iterator[Text]:
    """Yield a table for the terminal."""
    cells = (table.head, *table.rows)
    widths = [max(len(line[column]) for line in cells) for column in range(len(table.head))]
    for index, line in enumerate(cells):
        parts = [
            cell.ljust(width) if table.is_text(column) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield Text("  ".join(parts).rstrip(), style="bold" if not index else "")
    yield Text("")
    for note in table.notes:
        yield Text(note)
