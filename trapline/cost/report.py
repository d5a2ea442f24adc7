"""Results as text, as data, and compared with earlier ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.text import Text

from trapline.cost import tables
from trapline.cost.models import CostModel, of_isa
from trapline.cost.program import Hits, Profile
from trapline.cost.program_rows import PROGRAM_MECHANISMS
from trapline.cost.rows import Part, Row
from trapline.support.input_files import readable

# The format of `--json`; it changes when a field goes away or means something else.
VERSION: Final = 2
_FORMAT: Final = "trapline bench"
# So many probes of a program are shown.
_MOST: Final = 10


class ComparisonError(ValueError):
    """The file is not a result that can be compared; the message says why."""


class Change(NamedTuple):
    """A cost that differs from the earlier one."""

    row: str
    what: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The new cost by the old one."""
        return self.after / self.before if self.before else math.inf


def table(rows: Sequence[Row], machines: Sequence[CostModel]) -> Iterator[Text]:
    """Yield the tables of mechanisms as lines."""
    yield from tables.lines(tables.hits(rows))
    yield Text("")
    yield from tables.lines(tables.idle(rows, machines))
    measured = {row.isa for row in rows if row.events.exceptions}
    yield from model_lines([machine for machine in machines if measured & {*machine.isas}])


def model_lines(machines: Sequence[CostModel]) -> Iterator[Text]:
    """Yield a line about each model: its name, and its error on figures it was not made from."""
    for machine in machines:
        if machine.estimated:
            estimated = f"estimated, give or take {machine.margin:.0%}; {machine.derivation}"
            yield Text(f"{machine.name}: {machine.title}{machine.clock}; {estimated}")
            continue
        number = len(machine.checks)
        figures = "one published figure that was" if number == 1 else f"{number} published figures that were"
        error = f"off by at most {machine.error:.0%} on {figures} not used for it"
        yield Text(f"{machine.name}: {machine.title}{machine.clock}; {error}")


def without_times(machines: Sequence[CostModel], rows: Sequence[Row]) -> Iterator[Text]:
    """Yield a line about each model of which no row has times, because no row has an ISA of it."""
    shown = {row.isa for row in rows}
    for machine in machines:
        if not shown & {*machine.isas}:
            yield Text(f"{machine.name}: no times, because it is for {', '.join(machine.isas)}")


def checks(machines: Sequence[CostModel]) -> Iterator[Text]:
    """Yield the published figures beside the predictions of the model."""
    for machine in machines:
        clock = f", {machine.hz / 1e9:g} GHz" if machine.hz else ""
        yield Text(f"{machine.name}: {machine.title}{clock}", style="bold")
        yield Text(f"  source: {machine.source}")
        yield Text(f"  {machine.derivation}")
        jump = "" if machine.jump is None else f", jump {machine.jump:g} ns"
        yield Text(f"  trap {machine.trap:g} ns, step {machine.step:g} ns, return {machine.returns:g} ns{jump}")
        for check in machine.checks:
            predicted = machine.published(check.events)
            off = predicted / check.measured - 1
            yield Text(
                f"  {check.what:<34} measured {check.measured:>5.0f} ns, predicted {predicted:>5.0f} ({off:+.1%})"
            )
        yield Text("")


def program_lines(profile: Profile, machines: Sequence[CostModel]) -> Iterator[Text]:
    """Yield the cost of probes in a program, as lines."""
    hits = sum(each.hits for each in profile.hits)
    yield Text(f"{hits:,} hits of {len(profile.hits):,} probes, of {profile.probes:,} that were enabled")
    between = profile.instructions / max(1, hits)
    yield Text(f"{profile.instructions:,} instructions of the program, {between:,.0f} between two hits")
    yield Text("")
    usable = of_isa(machines, profile.isa)
    if not usable:
        yield Text(f"no machine with {profile.isa} has published figures, so there are no times")
    for machine in usable:
        total = sum(each.hits * machine.nanoseconds(each.events) for each in profile.hits)
        yield Text(f"{machine.name}: {_seconds(total)} beside the program's own time, on bare metal")
    if usable:
        yield Text("That is the exceptions with each model's prices (bench --models), without the handlers' own work.")
        yield Text("In a virtual machine they can be twenty times as many: bench --host measures this host.")
    yield Text("")
    yield Text("the most expensive probes:")
    by_cost = sorted(profile.hits, key=lambda each: -each.hits * _weight(each, usable))
    for each in by_cost[:_MOST]:
        price = f"{_seconds(each.hits * usable[0].nanoseconds(each.events)):>10}" if usable else ""
        share = each.hits / hits if hits else 0
        yield Text(f"  {each.hits:>12,}  {share:>6.1%}  {price}  {each.probe}  ({each.how})")
    yield from _advice(profile, by_cost)


def _weight(hits: Hits, machines: Sequence[CostModel]) -> float:
    return machines[0].nanoseconds(hits.events) if machines else hits.events.exceptions


def _advice(profile: Profile, by_cost: Sequence[Hits]) -> Iterator[Text]:
    total = sum(each.hits for each in profile.hits)
    if not total:
        yield Text("no probe fired")
        return
    few = 0
    for count, each in enumerate(by_cost, 1):
        few += each.hits
        if few > total / 2:
            yield Text("")
            probes, them = ("one probe has", "it") if count == 1 else (f"{count} probes have", "them")
            yield Text(f"{probes} more than half of all hits; without {them} tracing costs less than half.")
            break
    yield Text("A predicate does not avoid the trap.  Fewer probes do, and so does sampling:")
    yield Text("  profile-997 /pid == $target/ { @[ustack()] = count(); }")


def _seconds(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def data(rows: Sequence[Row], machines: Sequence[CostModel]) -> dict[str, Any]:
    """Return the table as plain objects for JSON."""
    return {"format": _FORMAT, "version": VERSION, "rows": [row_data(row, machines) for row in rows]}


def models_data(machines: Sequence[CostModel]) -> list[dict[str, Any]]:
    """Return the models with their predictions and the published figures, for JSON."""
    return [
        {
            "name": machine.name,
            "title": machine.title,
            "isas": list(machine.isas),
            "source": machine.source,
            "from": machine.derivation,
            "estimated": machine.estimated,
            "error": round(machine.error, 3),
            "trap": machine.trap,
            "step": machine.step,
            "return": machine.returns,
            "jump": machine.jump,
            "checks": [
                {"what": one.what, "measured": one.measured, "predicted": machine.published(one.events)}
                for one in machine.checks
            ],
        }
        for machine in machines
    ]


def row_data(row: Row, machines: Sequence[CostModel]) -> dict[str, Any]:
    """Return a row as a plain object for JSON."""
    return {
        "isa": row.isa,
        "mechanism": row.mechanism,
        "what": row.what,
        **{name: None if cost is None else round(cost, 3) for name, cost in costs(row).items()},
        "parts": {part.value: row.anatomy.parts.get(part, 0) for part in Part},
        "modelled": row.modelled,
        "dif": row.anatomy.dif,
        "traps": row.events.traps,
        "steps": row.events.steps,
        "returns": row.events.returns,
        "hits": row.hits,
        "nanoseconds": {
            machine.name: round(machine.nanoseconds(row.events), 1)
            for machine in of_isa(machines, row.isa)
            if machine.knows(row.events)
        },
    }


def costs(row: Row) -> dict[str, float | None]:
    """Return the costs that are compared, by name."""
    return {
        "instructions": row.instructions,
        "exceptions": row.exceptions,
        "accesses": row.anatomy.accesses,
        "lines": row.anatomy.lines,
        "pages": row.anatomy.pages,
        "code": row.idle.code,
        "rest": row.idle.rest,
        "elsewhere": row.idle.elsewhere,
    }


def program_data(profile: Profile, machines: Sequence[CostModel]) -> dict[str, Any]:
    """Return a program's profile as plain objects for JSON."""
    usable = of_isa(machines, profile.isa)
    return {
        "format": f"{_FORMAT} --program",
        "version": VERSION,
        "isa": profile.isa,
        "instructions": profile.instructions,
        "probes": profile.probes,
        "hits": [
            {
                "probe": each.probe,
                "hits": each.hits,
                "how": each.how,
                "traps": each.events.traps,
                "nanoseconds": {machine.name: round(machine.nanoseconds(each.events), 1) for machine in usable},
            }
            for each in profile.hits
        ],
    }


class Compared(NamedTuple):
    """Results beside earlier ones."""

    grown: list[Change]
    """The costs that are larger than before, by more than a share of it."""
    left_out: list[str]
    """What only one of both has, a line each."""
    rows: int
    """The number of rows that both have."""


def compared(path: Path, rows: Sequence[Row], threshold: float) -> Compared:
    """Compare costs with those of an earlier result.

    Rows of an ISA or a mechanism that was not measured now are of another question.  Raises
    `ComparisonError`.
    """
    try:
        earlier = json.loads(readable(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ComparisonError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, RecursionError) as error:
        raise ComparisonError(f"{path}: not JSON: {error}") from None
    if not isinstance(earlier, dict) or earlier.get("format") != _FORMAT or not isinstance(earlier.get("rows"), list):
        raise ComparisonError(f"{path}: not a result of `trapline bench --json`")
    if earlier.get("version") != VERSION:
        raise ComparisonError(f"{path}: version {earlier.get('version')} of the format; this is {VERSION}")
    asked = {(row.isa, row.mechanism) for row in rows}
    try:
        known = {
            _name(row["isa"], row["mechanism"], row["what"]): row
            for row in earlier["rows"]
            if (row["isa"], row["mechanism"]) in asked
        }
        grown, left_out, number = [], [], 0
        for row in rows:
            name = _name(row.isa, row.mechanism, row.what)
            old = known.pop(name, None)
            if old is None:
                left_out.append(f"{name}: not in {path}")
                continue
            number += 1
            for what, after in costs(row).items():
                before = old[what]
                if (after is None) is not (before is None):
                    left_out.append(f"{name}: {what} is {'not in' if before is None else 'only in'} {path}")
                elif after is not None and after > float(before) * (1 + threshold) + 1e-3:
                    grown.append(Change(name, what, float(before), after))
    except (KeyError, TypeError, ValueError):
        raise ComparisonError(f"{path}: a row is damaged") from None
    left_out += [f"{name}: only in {path}" for name in known]
    return Compared(grown, left_out, number)


def _name(isa: str, mechanism: str, what: str) -> str:
    # The instruction that stands for a kind of displacement differs when a guest is rebuilt.
    kind = what.partition(":")[0] if mechanism in {*PROGRAM_MECHANISMS, "kinst"} else what
    return f"{isa} {mechanism} {kind}"
