"""Lines of the `trace` file.  Source: Linux 6.12 kernel/trace/trace_output.c, trace.c."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    """Return an event's text: the place of the hit, or the function and its return, and arguments."""
    place = f"({address:#x})" if function is None else f"({address:#x} <- {function:#x})"
    return f"{name}: {place}" + "".join(f" {argument}={value}" for argument, value in arguments)


def user_stack(pcs: Sequence[int]) -> str:
    """Return the lines of a user stack after its prefix: eight frames at most."""
    return "<user stack trace>" + "".join(f"\n =>  <{pc:016x}>" for pc in pcs[:8] if pc)
