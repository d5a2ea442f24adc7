"""A table of figures, and functions that measure times."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.provenance import save

T = TypeVar("T")

Cell = str | int | float


@dataclass(frozen=True)
class Scale:
    """The amount of work to measure."""

    smallest: bool = False
    """Only a test that it works, with the least work; the figures have no meaning."""

    def rounds(self, number: int) -> int:
        """Return the number of rounds of a loop, given the number in a measurement."""
        return max(1, number // 100) if self.smallest else number

    def some(self, items: Iterable[T]) -> list[T]:
        """Return the items to measure: the first and the last of them in the smallest amount."""
        every = list(items)
        return [every[0], every[-1]] if self.smallest else every

    def one(self, items: Iterable[T]) -> list[T]:
        """Return the items to measure: the first of them in the smallest amount."""
        return list(items)[: 1 if self.smallest else None]

    def turns(self, number: int) -> int:
        """Return the number of measurements of each action."""
        return 1 if self.smallest else number


@dataclass(frozen=True)
class Figures:
    """Rows of a benchmark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str
    text_columns: frozenset[str] = frozenset({"ISA", "what"})
    left_out: Sequence[str] = ()
    """The measurements that were not possible here, and why, a line each."""

    def save(self, path: Path) -> None:
        """Write the figures to a file."""
        record = {
            "title": self.title,
            "machine": platform.machine(),
            "columns": self.columns,
            "rows": self.rows,
            "note": self.note,
        }
        save(path, record)


def seconds(action: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interleaved(actions: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Return the least time of each action.

    They take turns, so that other load on the machine affects all of them.
    """
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            best[name] = min(best[name], seconds(action))
    return best
