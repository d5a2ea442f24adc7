"""Lines of several CPUs in the order of their times.

Each CPU has its own time, and they take turns, so a line may come after one that is later.  Linux
has a buffer for each CPU, and shows the earliest line of all of them (kernel/trace/trace.c,
__find_next_entry).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from trapline.ftrace.output import time_of


class Merging:
    """Passes lines on by their times, as soon as no earlier one can come.

    `reached()` returns the virtual time in nanoseconds that all CPUs have reached.
    """

    def __init__(self, write: Callable[[str], object], reached: Callable[[], int]) -> None:
        self._write = write
        self._reached = reached
        self._lines: list[tuple[int, int, str]] = []
        """A heap of time in microseconds, number, and text: a line, and those that belong to it."""
        self._number = 0

    def write(self, text: str) -> None:
        """Take whole lines; one without a time belongs to the line before it."""
        records: list[tuple[int, str]] = []
        for line in text.splitlines(keepends=True):
            time = time_of(line)
            if time is None:
                time, before = records.pop()
                line = before + line  # noqa: PLW2901
            records.append((time, line))
        for time, record in records:
            self._number += 1
            heapq.heappush(self._lines, (time, self._number, record))
        self._pass_on(self._reached() // 1000)

    def finish(self) -> None:
        """Pass the remaining lines on."""
        self._pass_on(None)

    def _pass_on(self, before: int | None) -> None:
        while self._lines and (before is None or self._lines[0][0] < before):
            self._write(heapq.heappop(self._lines)[2])
