"""Lines of the `trace` file.  Source: Linux 6.12 kernel/trace/trace_output.c, trace.c."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from typing import Final

HEADER: Final = """\
# tracer: nop
#
# entries-in-buffer/entries-written: {count}/{count}   #P:{cpus}
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""
# Interrupts are off while a uprobe's handlers run; nothing else is.
FLAGS: Final = "d...."
# Characters of a thread's name, and of its number.
NAME_WIDTH: Final = 16
TID_WIDTH: Final = 7
# What `prefix` makes; a name may have any characters.
_PREFIX: Final = re.compile(rf".{{16,}}-\d+ +\[\d{{3,}}\] {re.escape(FLAGS)} +(\d+)\.(\d{{6}}): ")


def prefix(comm: str, tid: int, cpu: int, time: int) -> str:
    """Return the prefix of every line; `time` in nanoseconds."""
    seconds, rest = divmod(time // 1000, 1_000_000)
    return f"{comm:>{NAME_WIDTH}}-{tid:<{TID_WIDTH}} [{cpu:03d}] {FLAGS} {seconds:5d}.{rest:06d}: "


def time_of(line: str) -> int | None:
    """Return the time in a line's prefix in microseconds; None: the line has no prefix."""
    found = _PREFIX.match(line)
    return None if found is None else int(found[1]) * 1_000_000 + int(found[2])


def event(name: str, address: int, function: int | None, arguments: Sequence[tuple[str, str]]) -> str:
    """Return an event's text: the address of the hit (or function and return), and arguments."""
    position = f"({address:#x})" if function is None else f"({address:#x} <- {function:#x})"
    return f"{name}: {position}" + "".join(f" {argument}={value}" for argument, value in arguments)


def user_stack(pcs: Sequence[int]) -> str:
    """Return the lines of a user stack after its prefix: eight frames at most."""
    return "<user stack trace>" + "".join(f"\n =>  <{pc:016x}>" for pc in pcs[:8] if pc)


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
