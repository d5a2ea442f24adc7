"""The page of totals, docs/evidence.md, made of `results/*.json`.

`python -m benchmarks.prose` writes it anew, and a test compares it with the results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).parent / "results"
# Reasons of refusals that are shown; the others are counted together.
_SHOWN: Final = 9


def _saved(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def _table(*rows: tuple[object, ...]) -> str:
    """Return a table of Markdown; the first row is its head, and numbers get separators."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    texts.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in texts)


def section() -> str:
    """Return the section: a table of totals, and what was left out and refused, by reason."""
    check, sweep, race = _saved("check"), _saved("sweep"), _saved("race")
    tables = [table for isa in _saved("encodings").values() for table in isa["tables"]]
    encodings = sum(table["encodings"] for table in tables)
    wrong = sum(len(table["disagreements"]) for table in tables if table["right"])
    columns = race["columns"]
    ours = [dict(zip(columns, row, strict=True)) for row in race["rows"] if "ours" in row[columns.index("whose")]]
    fuzz = _saved("fuzz").values()
    totals = _table(
        ("what", "command", "number", "wrong"),
        ("sites checked", "`python -m benchmarks.check`", check["sites"], check["diverged"]),
        ("states of their instructions", "", check["states"], check["diverged"]),
        ("encodings decided, over all tables", "`python -m benchmarks.encodings`", encodings, wrong),
        ("probed runs of programs", "`make sweep`", sweep["runs"], len(sweep["different"])),
        ("probes in them that fired", "", sweep["fired"], len(sweep["different"])),
        ("races, by our method of patching", "`python -m benchmarks race`", sum(o["races"] for o in ours),
         sum(o["wrong"] for o in ours)),
        ("their states, in every order", "", sum(o["states"] for o in ours), sum(o["undecided"] for o in ours)),
        ("cases of random input", "`make fuzz`", sum(one["cases"] for one in fuzz), sum(one["found"] for one in fuzz)),
    )  # fmt: skip
    refused: Counter[str] = Counter()
    for row in check["rows"]:
        refused.update(row["refusals"])
    shown = refused.most_common(_SHOWN)
    rest = refused.total() - sum(count for _reason, count in shown)
    left_out = [(f"{row['isa']}, {row['case']}", row["left_out"]) for row in check["rows"] if row["left_out"]]
    return "\n\n".join(
        (
            totals,
            "The cases of random input that were wrong are bugs that have been fixed since.",
            f"{check['left_out']:,} more states were left out: the CPU emulator gets them wrong.",
            _table(("where", "states left out"), *left_out),
            *_runs(check["rows"]),
            "Instructions that the providers refuse, by reason:",
            _table(("reason", "sites"), *shown, ("all other reasons", rest)),
        )
    )


def _runs(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield when and by what each part was checked, of those whose results say so."""
    known = [row for row in rows if "run" in row]
    if known:
        yield (f"Of {len(known)} of the {len(rows)} parts of the check it is recorded when and by what they were run:")
        names = list(known[0]["run"])
        cells = [(f"{row['isa']}, {row['case']}", *(row["run"][name] for name in names)) for row in known]
        yield _table(("where", *names), *cells)
