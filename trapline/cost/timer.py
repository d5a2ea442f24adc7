"""Times of calls in this process."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(action: Callable[[], object], turns: int) -> float:
    """Return the nanoseconds of the fastest of some turns."""
    best = float("inf")
    for _ in range(turns):
        start = time.perf_counter_ns()
        action()
        best = min(best, time.perf_counter_ns() - start)
    return best
