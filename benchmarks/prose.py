"""The saved results, `results/*.json`, as text: a section of README.md and one of docs/bench.md.

    python -m benchmarks.prose      writes the sections anew

`--save` of the benchmarks writes them too, and a test compares them with the results.  A
sentence is omitted if a result lacks its rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from benchmarks import evidence, scripts, wheel_size, wheels
from benchmarks.tables import table
from emu.engine.qemu.rewriters import REWRITERS

HOME: Final = Path(__file__).parent
README: Final = HOME / "README.md"
RESULTS: Final = HOME / "results"
BEGIN: Final = "<!-- Made by benchmarks.prose from results/*.json: change that, not this. -->"
END: Final = "<!-- The end of what benchmarks.prose has made. -->"
_WIDTH: Final = 100
_EMPTY: Final = "fbt::f:entry { }"
_NANOSECONDS: Final = 1_000_000_000

Record = Mapping[str, Any]


class Rows:
    """The rows of a saved table, by what their column `what` begins with."""

    def __init__(self, record: Record) -> None:
        self._columns: Sequence[str] = record["columns"]
        self._rows: Sequence[Sequence[Any]] = record["rows"]

    def values(self, column: str, *beginnings: str, isa: str | None = None) -> list[float]:
        """Return the numbers of a column in the selected rows; without a beginning: in all rows."""
        place = self._columns.index(column)
        label = self._columns.index("what") if "what" in self._columns else 0
        return [
            row[place]
            for row in self._rows
            if isinstance(row[place], int | float)
            and (not beginnings or str(row[label]).startswith(beginnings))
            and (isa is None or row[0] == isa)
        ]

    def isas(self, column: str | None = None, *beginnings: str) -> str:
        """Return the ISAs that have rows, or numbers of a column in the selected rows."""
        names = dict.fromkeys(str(row[0]) for row in self._rows)
        return _listed([name for name in names if column is None or self.values(column, *beginnings, isa=name)])


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _range(values: Sequence[float], form: str = ".1f") -> str:
    """Write the least and the greatest of some numbers, once if they look the same."""
    least, most = format(min(values), form), format(max(values), form)
    return least if least == most else f"{least} to {most}"


def _firing(rows: Rows) -> Iterator[str]:
    times = "x an empty trap callback"
    if empty := rows.values(times, _EMPTY):
        yield f"An empty action costs {_range(empty)} times an empty trap callback ({rows.isas(times, _EMPTY)})."
    if more := rows.values(times, "with a"):
        yield f"With a predicate or an aggregation it is {_range(more)} times."


def _speed(rows: Rows) -> Iterator[str]:
    for what, blocks in (("work", "four to five"), ("digest", "26 to 40")):
        if share := rows.values("% of bare", what):
            yield (
                f"Counting leaves {_range(share, '.0f')} % of bare Unicorn's speed on blocks of {blocks} "
                f"instructions (`{what}`)."
            )


def _language(rows: Rows) -> Iterator[str]:
    (lines,) = rows.values("a second", "compile a script")
    decoded, functions = (rows.values("a second", f"DIF, {how}") for how in ("decoded", "as functions"))
    yield f"{lines:,.0f} lines of D are compiled a second, without the time that Python takes to start."
    if decoded and functions:
        yield (
            f"A DIF instruction takes {_NANOSECONDS / decoded[0]:,.0f} ns in the machine that decodes each, and "
            f"{_NANOSECONDS / functions[0]:,.0f} ns as part of the function that a DIF object is translated to."
        )
    if updates := rows.values("a second", "@ =", "@[arg0"):
        yield f"There are {_range(updates, ',.0f')} aggregation updates a second;"
        (named,) = rows.values("a second", "@[execname]")
        yield f"with `execname` as key {named:,.0f}, since the guest's memory is asked for the name."


def _linux(rows: Rows) -> Iterator[str]:
    for words, beginnings in (
        ("An instruction that a pid probe emulates", ("pid, emulated: a nop, as", "pid, emulated: a call")),
        ("One that runs out of line", ("pid, out of line",)),
        ("A return of a pid probe", ("pid, return",)),
        ("A stepped uprobe, which takes two traps,", ("uprobe, stepped",)),
        ("A return uprobe, which takes two as well,", ("uprobe, return",)),
        ("A D action (`@ = count();`) on an emulated instruction", ("pid, emulated: a nop; @",)),
        ("An event of the `uprobe` command, with its line,", ("uprobe: a nop; its line",)),
    ):
        if found := rows.values("ns a hit", *beginnings):
            yield f"{words} costs {_range(found, '.0f')} ns."
    if found := rows.values("times an empty trap callback"):
        yield f"That is {_range(found)} times an empty trap callback in Python"
    if found := rows.values("an empty native one"):
        yield f"and {_range(found)} times an empty one in machine code."


def _sdt(rows: Rows) -> Iterator[str]:
    now, flag = "FreeBSD now", "FreeBSD to 2024"
    if rest := rows.values("at rest", now):
        yield (
            f"A hot-patched site at rest, with what the compiler does around it, is {_range(rest)} instructions; "
            f"with a flag it is {_range(rows.values('at rest', flag))}, and "
            f"{_range(rows.values('another on', flag))} as soon as any probe is on."
        )
    if firing := rows.values("x FBT", "FreeBSD"):
        yield (
            f"A firing takes {_range(rows.values('firing', 'FreeBSD'), '.0f')} instructions without a trap, "
            f"{_range(firing, '.2f')} of what FBT's breakpoint takes in the guest's own handler."
        )


def _linux_speed(rows: Rows) -> Iterator[str]:
    yield f"Counting leaves {_range(rows.values('% of bare Unicorn'), '.0f')} % of bare Unicorn ({rows.isas()})."
    if times := rows.values("times qemu-user's seconds"):
        yield f"From start to end a short program takes {_range(times)} times as long as under qemu-user."


def _interpreters(rows: Rows) -> Iterator[str]:
    yield (
        f"Debian's lua, python, sqlite and bash take {_range(rows.values('times'))} times the CPU seconds that they "
        f"take under qemu-user, without the start ({rows.isas()})."
    )


def _rewriters(rows: Rows) -> Iterator[str]:
    for name in REWRITERS:
        found = [row[5] for row in rows._rows if row[2] == name]  # noqa: SLF001  the column has another name
        if found:
            yield f"`{name}` saves {_range(found, '.0f')} % of the interpreters' CPU seconds ({rows.isas()})."


def _startup(rows: Rows) -> Iterator[str]:
    for command in ("dtrace -n 'BEGIN{exit(0)}'", "dtrace -l"):
        yield f"`{command}` takes {_range(rows.values('seconds', command), '.2f')} s."


def _check_speed(rows: Rows) -> Iterator[str]:
    for states in sorted({row[2] for row in rows._rows}):  # noqa: SLF001  the column has another name
        found = [row for row in rows._rows if row[2] == states]  # noqa: SLF001  as above
        speeds, times = ([row[column] for row in found] for column in (3, 5))
        yield (
            f"With {states:,} states a site `check` tries {_range(speeds, ',.0f')} site-states a second and core, "
            f"{_range(times, '.0f')} times as many as by Python alone."
        )


def _object_sweep(rows: Rows) -> Iterator[str]:
    for isas, what in ((("aarch64", "riscv64"), "words"), (("x86_64", "i386"), "instructions of x86")):
        found = [row for row in rows._rows if row[0] in isas]  # noqa: SLF001  those of some ISAs
        speeds, times = ([row[column] for row in found] for column in (2, 4))
        if found:
            yield (
                f"`check --object --sweep` asks a decoder about {_range(speeds, ',.0f')} {what} a second, "
                f"{_range(times, '.1f')} times as many as one by one."
            )


_TABLES: Final[Mapping[str, Callable[[Rows], Iterator[str]]]] = {
    "firing": _firing,
    "speed": _speed,
    "language": _language,
    "linux": _linux,
    "linux_speed": _linux_speed,
    "interpreters": _interpreters,
    "rewriters": _rewriters,
    "sdt": _sdt,
    "startup": _startup,
    "check_speed": _check_speed,
    "object_sweep": _object_sweep,
}


def _sweep(record: Record) -> str:
    different = len(record["different"])
    return (
        f"{record['runs']:,} runs, {record['probes']:,} probes, {record['fired']:,} firings, "
        f"{different or 'none'} different; {record['refused']:,} instructions were refused (load-exclusives and what "
        "stands between them and their stores, breakpoints, vector loads relative to the pc)."
    )


def _check(record: Record) -> str:
    return (
        f"{record['sites']:,} sites, {record['states']:,} site-states, {record['diverged'] or 'none'} diverged; "
        f"{record['left_out']:,} states were left out (docs/check.md says which)."
    )


def _alike(record: Record) -> str:
    where = _listed(list(dict.fromkeys(f"{row['isa']} {row['case']}" for row in record["rows"])))
    return (
        f"{record['sites']:,} sites, {record['states']:,} site-states, of which `check` tries {record['elsewhere']:,} "
        f"at another site with the same instruction; at their own sites {record['differing'] or 'none'} of the sites "
        f"{'has' if record['differing'] == 1 else 'have'} another result ({where})."
    )


def _programs(record: Record) -> str:
    runs = record.values()
    workloads, same = sum(run["programs"] for run in runs), sum(run["as_qemu"] for run in runs)
    probed = sum(run["as_unprobed"] for run in runs)
    return (
        f"{same:,} of {workloads:,} workloads on {len(record)} ISAs print what qemu-user prints, and {probed:,} print "
        f"the same with probes, of which {sum(run['probes_fired'] for run in runs):,} fired."
    )


def _encodings(record: Record) -> str:
    tables = [table for isa in record.values() for table in isa["tables"]]
    encodings = sum(max(table["encodings"] for table in isa["tables"]) for isa in record.values())
    unreached = sum(len(table["unreached"]) for table in tables)
    wrong = sum(len(table["disagreements"]) for table in tables)
    reached = f"{unreached} rows are not reached" if unreached else "every row is reached"
    return (
        f"{encodings:,} encodings of {len(record)} ISAs, by {len(tables)} tables: {reached}, "
        f"{wrong or 'none'} disagrees with capstone but for the reasons listed."
    )


def _race(record: Record) -> str:
    rows = [dict(zip(record["columns"], row, strict=True)) for row in record["rows"]]
    ours = [row for row in rows if "ours" in row["whose"]]
    wrong = [f"{row['provider']} on {row['ISA']} ({row['how']})" for row in ours if row["wrong"]]
    races, states, undecided = (sum(row[name] for row in rows) for name in ("races", "states", "undecided"))
    tried, failed = (sum(row[name] for row in ours) for name in ("races", "wrong"))
    return (
        f"{races:,} races of patching and executing, {states:,} states, {undecided or 'none'} undecided; of the "
        f"{tried:,} by the simulator's own method {failed or 'none'} fail{': ' + _listed(wrong) if wrong else ''} "
        "(docs/race.md says why, and which methods of real systems fail)."
    )


_TOTALS: Final[Mapping[str, Callable[[Record], str]]] = {
    "sweep": _sweep,
    "programs": _programs,
    "check": _check,
    "alike": _alike,
    "encodings": _encodings,
    "race": _race,
}


def section() -> str:
    """Return the section of the results, without the marks around it."""
    texts = {}
    for name in (*_TABLES, *_TOTALS):
        record = json.loads((RESULTS / f"{name}.json").read_text())
        texts[name] = _TOTALS[name](record) if name in _TOTALS else " ".join(_TABLES[name](Rows(record)))
    return "\n".join(
        fill(f"* **{name}**: {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for name, text in texts.items()
    )


def models() -> str:
    """Return the predictions of the cost models beside published figures, as a table."""
    record = json.loads((RESULTS / "models.json").read_text())
    head = ("model", "machine", "what", "measured", "predicted", "off")
    rows = [
        (model, machine, what, f"{measured:.0f} ns", f"{predicted:.0f} ns", f"{off:+.1f} %")
        for model, machine, what, measured, predicted, off, _source in record["rows"]
    ]
    return table(head, rows)


# The pages that have a section from the results.
_DOCS: Final = HOME.parent / "docs"
PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    README: section,
    _DOCS / "bench.md": models,
    _DOCS / "evidence.md": evidence.section,
    _DOCS / "hosts.md": wheels.section,
    _DOCS / "isas.md": scripts.section,
    HOME.parent / "CONTRIBUTING.md": wheel_size.section,
}


def written(page: str, made: Callable[[], str] = section) -> str:
    """Return a page with a new section from the results.  Raises ValueError without marks."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the marks around the section are missing")
    return f"{before}{BEGIN}\n\n{made()}\n\n{END}{after}"


def write() -> None:
    """Write the sections anew."""
    for path, made in PAGES.items():
        path.write_text(written(path.read_text("utf-8"), made), "utf-8")


if __name__ == "__main__":
    write()
    sys.exit(0)
