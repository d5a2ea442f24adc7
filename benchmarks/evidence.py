"""The page of totals, docs/evidence.md, made of `results/*.json`.

`python -m benchmarks.prose` writes it anew, and a test compares it with the results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from benchmarks.provenance import projection

RESULTS: Final = Path(__file__).parent / "results"
# Reasons of refusals that are shown; the others are counted together.
_SHOWN: Final = 9
_WIDTH: Final = 100


def _saved(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def _table(*rows: tuple[object, ...]) -> str:
    """Return a table of Markdown; the first row is its head, and numbers get separators."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    texts.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in texts)


def _paragraph(text: str) -> str:
    return fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _totals() -> list[tuple[object, ...]]:
    """Return the rows of the table of totals, with its head."""
    check, alike, sweep, race, chains = map(_saved, ("check", "alike", "sweep", "race", "toolchains"))
    tables = [table for isa in _saved("encodings").values() for table in isa["tables"]]
    encodings = sum(table["encodings"] for table in tables)
    wrong = sum(len(table["disagreements"]) for table in tables if table["right"])
    columns = race["columns"]
    ours = [dict(zip(columns, row, strict=True)) for row in race["rows"] if "ours" in row[columns.index("whose")]]
    fuzz = _saved("fuzz").values()
    return [
        ("what", "command", "number", "wrong"),
        ("sites checked", "`python -m benchmarks.check`", check["sites"], check["diverged"]),
        ("states of their instructions", "", check["states"], check["diverged"]),
        ("sites tried with others, and each by itself", "`python -m benchmarks.alike`", alike["sites"],
         alike["differing"]),
        ("their states that were tried at another site, and at their own", "", alike["elsewhere"], alike["differing"]),
        ("encodings decided, over all tables", "`python -m benchmarks.encodings`", encodings, wrong),
        ("probed runs of programs", "`make sweep`", sweep["runs"], len(sweep["different"])),
        ("probes in them that fired", "", sweep["fired"], len(sweep["different"])),
        ("programs of other compilers and linkers, probed", "`make toolchains`", chains["programs"],
         len(chains["different"])),
        ("their probes that fired", "", chains["fired"], len(chains["different"])),
        ("races, by our method of patching", "`python -m benchmarks race`", sum(o["races"] for o in ours),
         sum(o["wrong"] for o in ours)),
        ("their states, in every order", "", sum(o["states"] for o in ours), sum(o["undecided"] for o in ours)),
        ("cases of random input", "`make fuzz`", sum(one["cases"] for one in fuzz), sum(one["found"] for one in fuzz)),
    ]  # fmt: skip


def totals() -> Iterator[str]:
    """Yield the totals as lines of text."""
    for what, _command, number, wrong in _totals()[1:]:
        yield f"{what:36}{number:>16,}  wrong: {wrong}"


def section() -> str:
    """Return the section: totals, rates, what was left out and refused by reason, and provenance."""
    rows = _saved("check")["rows"]
    refused: Counter[str] = Counter()
    for row in rows:
        refused.update(row["refusals"])
    shown = refused.most_common(_SHOWN)
    rest = refused.total() - sum(count for _reason, count in shown)
    return "\n\n".join(
        (
            _table(*_totals()),
            "The cases of random input that were wrong are bugs that have been fixed since.",
            *_rates(rows),
            *_left_out(rows),
            "Instructions that the providers refuse, by reason:",
            _table(("reason", "sites"), *shown, ("all other reasons", rest)),
            *_compiled(),
            *_runs(rows),
        )
    )


def _rates(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how fast the check was, and what more of it would take on one core."""
    timed = [row for row in rows if row["states_per_second_and_core"]]
    states = sum(row["states"] for row in timed)
    seconds = sum(row["states"] / row["states_per_second_and_core"] for row in timed)
    yield _paragraph(f"The check at the rates of its parts: {projection(states, seconds)}, on one core.")
    yield _table(
        ("where", "states of a site", "states a second and core"),
        *(
            (f"{row['isa']}, {row['case']}", row.get("states_of_a_site", 20), row["states_per_second_and_core"])
            for row in timed
        ),
    )


def _left_out(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield which states were not compared, and why."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        where = f"{row['isa']}, {row['case']}"
        found.update({(where, reason): count for reason, count in row["left_out_because"].items() if count})
    yield f"{found.total():,} more states were left out:"
    yield _table(("where", "states left out", "reason"), *((where, n, reason) for (where, reason), n in found.items()))


def _compiled() -> Iterator[str]:
    """Yield what the compiled C of other systems, and of our own small ones, gave."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in _saved("objects")["rows"]:
        groups.setdefault((row["glue"], row["sources"]), []).append(row)
    yield _paragraph(
        "Compiled C against our rules and the CPU (`python -m benchmarks.objects`), on system calls of the teaching "
        "kernel. Here a difference or a bad access is one of that C; `testbins` is ours. docs/objects.md explains them:"
    )
    yield _table(
        ("glue", "sources", "ISAs", "instructions decided", "sites in both", "executed", "differences", "bad accesses"),
        *(
            (glue, sources, ", ".join(row["ISA"] for row in found), *_sums(found))
            for (glue, sources), found in groups.items()
        ),
    )


def _sums(rows: list[dict[str, Any]]) -> Iterator[int | str]:
    """Yield the numbers of a row; "" for what a glue does not count."""
    for names in (("encodings",), ("sites in both",), ("executed", "displaced instructions")):
        numbers = [row["counts"][name] for row in rows for name in names if name in row["counts"]]
        yield sum(numbers) if numbers else ""
    yield sum(sum(row["differences"].values()) for row in rows)
    yield sum(len(row["bad accesses"]) for row in rows)


def _runs(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield when and by what each result was made."""
    results = [(f"check: {row['isa']}, {row['case']}", row) for row in rows]
    results += [(f"alike: {row['isa']}, {row['case']}", row) for row in _saved("alike")["rows"]]
    results += [(f"encodings: {isa}", one) for isa, one in _saved("encodings").items()]
    results += [(name, _saved(name)) for name in ("sweep", "race", "toolchains")]
    results += [(f"objects: {one['glue']}, {one['sources']}, {one['ISA']}", one) for one in _saved("objects")["rows"]]
    results += [(f"fuzz: {name}", one) for name, one in _saved("fuzz").items()]
    # Results from before provenance was saved: the commit that has brought each is in the history.
    committed = _saved("committed")
    known = [(what, one["run"] if "run" in one else committed[what]) for what, one in results]
    older = sum("run" not in one for _what, one in results)
    yield "When and by what each of these results was made:"
    names = list(dict.fromkeys(name for _what, run in known for name in run))
    yield _table(("result", *names), *((what, *(run.get(name, "") for name in names)) for what, run in known))
    if older:
        yield _paragraph(
            f"{older} of these {len(results)} results are older than the record of it: their date is that of the "
            "commit that brought them, and the versions that it did not fix are not known."
        )
