"""The number of public D scripts that compile for the kernel guest, and the reasons of the others.

    python -m benchmarks.scripts FOLDER...

A folder is a set of scripts, `*.d` at any depth.  They are others' and are not kept here: only
the totals are saved, and `benchmarks.prose` writes them into docs/isas.md.

Each script is compiled by `trapline dtrace -e -s`, and if that fails, once more with `-Z`.  Its
first line may begin with `#!` and ask for more options, of which `-C` alone decides what compiles.
A script that names arguments gets a 1 for each, unless it sets the option `defaultargs`; one that
names `$target` gets a command.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import stamped
from benchmarks.tables import table

SAVED: Final = Path(__file__).parent / "results" / "scripts.json"
# The words of an error -> the reason it is counted under; the first that fits.
REASONS: Final[Mapping[str, str]] = {
    r"probe description \S+ does not match any probes": "a probe that the kernel guest does not have",
    r"no probe matches": "a probe that the kernel guest does not have",
    r"failed to resolve \S+: no such symbol": "a variable of another kernel",
    r"is not a member of|does not define": "a member of another kernel's structures",
    r"syntax error|failed to resolve \w+_t: unknown": "a type of another kernel",
    r"cannot open|No such file|failed to process|cpp": "a header file that is not there",
}
OTHER: Final = "another error"
TRACEBACK: Final = "our own error: a traceback, or longer than a minute"
_LIMIT: Final = 60
_ASKS: Final = re.compile(r"#!.*dtrace\s+-(\w+)")
_ARGUMENT: Final = re.compile(r"\$\$?([1-9]\d?)\b")


def command(script: Path) -> list[str]:
    """Return the options and arguments that a script is compiled with.  Raises OSError."""
    text = script.read_text("utf-8", "replace")
    asked = _ASKS.match(text)
    preprocessed = ["-C"] if asked and "C" in asked[1] else []
    numbers = [] if re.search(r"#pragma\s+D\s+option\s+defaultargs", text) else map(int, _ARGUMENT.findall(text))
    target = ["-c", "true"] if "$target" in text else []
    return [*preprocessed, *target, "-e", "-s", str(script), *["1"] * max(numbers, default=0)]


def refusal(words: Sequence[str]) -> str | None:
    """Compile a script; return None if it compiles, or else the reason."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "trapline", "dtrace", *words],
            capture_output=True, text=True, timeout=_LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return TRACEBACK
    if ran.returncode == 0:
        return None
    if "Traceback" in ran.stderr:
        return TRACEBACK
    return next((reason for pattern, reason in REASONS.items() if re.search(pattern, ran.stderr)), OTHER)


def measured(folder: Path) -> dict[str, Any]:
    """Return how many scripts of a folder there are and compile; and the others' reasons.

    Raises OSError if a script cannot be read, and ValueError for a folder without scripts.
    """
    reasons: Counter[str] = Counter()
    scripts = sorted(folder.rglob("*.d"))
    if not scripts:
        raise ValueError(f"{folder} has no *.d")
    plain = lenient = 0
    for script in scripts:
        words = command(script)
        if refusal(words) is None:
            plain += 1
        elif (reason := refusal(["-Z", *words])) is None:
            lenient += 1
        else:
            reasons[reason] += 1
            print(f"{script}: {reason}", file=sys.stderr)
    return {
        "scripts": len(scripts),
        "compile": plain,
        "with -Z": plain + lenient,
        "reasons": dict(sorted(reasons.items())),
    }


def section() -> str:
    """Return the saved totals as a table, and the reasons of those that do not compile with -Z."""
    sets = json.loads(SAVED.read_text("utf-8"))
    counts = ("scripts", "compile", "with -Z")
    rows = [[name, *(str(one[count]) for count in counts), one["run"]["date"]] for name, one in sets.items()]
    rows.append(["all", *(str(sum(one[count] for one in sets.values())) for count in counts), ""])
    reasons: Counter[str] = Counter()
    for one in sets.values():
        reasons.update(one["reasons"])
    told = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    of = ", ".join(f"`{name}`" for name, one in sets.items() if one["reasons"])
    return (
        f"{table(('set', *counts, 'measured'), rows)}\n\n"
        f"The scripts of {of} that do not compile with `-Z` either name:\n\n"
        f"{table(('what', 'scripts'), [(reason, str(count)) for reason, count in told])}"
    )


def main() -> None:
    """Compile the scripts of the folders that are given, and save their totals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripts", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    sets = json.loads(SAVED.read_text("utf-8")) if SAVED.exists() else {}
    try:
        for folder in parser.parse_args().folders:
            sets[folder.name] = stamped(measured(folder))
            SAVED.write_text(json.dumps(sets, indent=1) + "\n", "utf-8")
    except (OSError, ValueError) as error:
        sys.exit(f"the scripts cannot be counted: {error}")
    print(section())


if __name__ == "__main__":
    main()
