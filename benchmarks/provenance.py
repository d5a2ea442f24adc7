"""When and by which versions a long check was run, how fast it was, and what more of it would take."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
# Two runs can differ by the CPU emulator, and by the decoder that is compared with.
_PACKAGES: Final = ("unicorn", "capstone")
# Powers of ten of site-states whose time is told.
_PROJECTED: Final = (8, 9)


def provenance(seeds: str) -> dict[str, str]:
    """Return the date, the version of the source, the versions of the libraries, and the seeds.

    `seeds`: where the check's random numbers come from, in words.
    """
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--tags"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "source": described.stdout.strip() or "not a git tree",
        **{package: version(package) for package in _PACKAGES},
        "seeds": seeds,
    }


def projection(states: int, seconds: float) -> str:
    """Return the rate of a run, and what 10^8 and 10^9 site-states would take at that rate."""
    if not states:
        return "nothing was left to do: no rate"
    rate = states / seconds
    hours = ", ".join(f"10^{power}: {10**power / rate / 3600:,.1f} h" for power in _PROJECTED)
    return f"{states:,} site-states in {seconds:,.0f} s: {rate:,.0f} a second; at that rate {hours}"
