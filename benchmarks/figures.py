"""A table of figures, and the way times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Scale:
    """The amount of work to measure."""

    smallest: bool = False
    """Only whether it works: the least that goes through everything; the figures mean nothing."""

    def rounds(self, number: int) -> int:
        """Return how many rounds a loop makes, of the number that a measurement makes."""
        return max(1, number // 100) if self.smallest else number

    def turns(self, number: int) -> int:
        """Return how many times a thing is measured."""
        return 1 if self.smallest else number


@dataclass(frozen=True)
class Figures:
    """Rows of a benchmark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str
    text_columns: frozenset[str] = frozenset({"ISA", "what"})


def seconds(action: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interleaved(actions: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Return the least time of each action.

    They take turns, so that a noisy moment meets them all.
    """
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            best[name] = min(best[name], seconds(action))
    return best
