"""When and by which versions a result was made, and what more of it would take.

`stamped` is used for every result that is saved.
"""

from __future__ import annotations

import json
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]
# Two runs can differ by the CPU emulator, and by the decoder that is compared with.
_PACKAGES: Final = ("unicorn", "capstone")
# Files whose changes are of no consequence: the results themselves, and what is said of them.
_APART: Final = ("benchmarks/results", "docs", "*.md")
# Powers of ten of site-states whose time is told.
_PROJECTED: Final = (8, 9)
NO_SEEDS: Final = "nothing is random"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=False).stdout.strip()


@cache
def _source() -> str:
    """Return the version of the source when this process first asked."""
    commit = _git("describe", "--always", "--tags", "--exclude=*")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{path}" for path in _APART))
    return f"{commit}{'-dirty' * bool(changed)}" if commit else "not a git tree"


def provenance(seeds: str = NO_SEEDS) -> dict[str, str]:
    """Return the date, the version of the source, the versions of what it runs on, and the seeds.

    `seeds`: where the random numbers come from, in words.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "source": _source(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "seeds": seeds,
    }


def stamped(result: dict[str, Any], seeds: str = NO_SEEDS) -> dict[str, Any]:
    """Return a result with its provenance, as it is saved."""
    return {**result, "run": provenance(seeds)}


def save(path: Path, result: dict[str, Any], seeds: str = NO_SEEDS) -> None:
    """Write a result with its provenance; one that is there and says the same keeps its own."""
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if not ("run" in before and json.loads(json.dumps(result)).items() <= before.items()):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(stamped(result, seeds), indent=1) + "\n", "utf-8")


def projection(states: int, seconds: float) -> str:
    """Return the rate of a run, and what 10^8 and 10^9 site-states would take at that rate."""
    if not states:
        return "nothing was left to do: no rate"
    rate = states / seconds
    hours = ", ".join(f"10^{power}: {10**power / rate / 3600:,.1f} h" for power in _PROJECTED)
    return f"{states:,} site-states in {seconds:,.0f} s: {rate:,.0f} a second; at that rate {hours}"
