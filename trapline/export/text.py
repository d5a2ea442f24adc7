"""Two layouts of text that scripts read: `perf script`'s, and that of ftrace's `trace` file.

Sources: Linux 6.12 tools/perf/builtin-script.c; kernel/trace/trace_output.c.
"""

from __future__ import annotations

from collections.abc import Mapping

from trapline.export.events import Event, Recording, Stack, Value, cell

_FTRACE_HEADER = """\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


def _time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds // 1000, 1_000_000)
    return f"{seconds}.{rest:06d}"


def _name(event: Event) -> str:
    """Return an event's name as perf writes it: system:event, without blanks."""
    where = "_".join(part for part in (event.function, event.name) if part)
    return f"{event.provider}:{where}".replace(" ", "_")


def _fields(values: Mapping[str, Value]) -> str:
    return " ".join(f"{name}={cell(value)}" for name, value in values.items() if not isinstance(value, Stack))


def perf_script(recording: Recording) -> str:
    """Return the events as `perf script` prints them: a line, its stack, and an empty line.

    If no event has a stack, they are lines without empty lines between them.
    """
    parts = []
    # A reader takes all up to the next empty line for the stack, so events without one have it too.
    end = "\n" if any(event.stack for event in recording.events) else ""
    for event in recording.events:
        head = f"{event.process[:16]} {event.pid:>5}/{event.tid:<5} [{event.cpu:03d}] {_time(event.time)}:"
        parts.append(f"{head} {_name(event)}: {_fields(event.values)}".rstrip() + "\n")
        for frame in event.stack or ():
            module, _, symbol = frame.rpartition("`")
            parts.append(f"\t{0:16x} {symbol or frame} ({module or '[unknown]'})\n")
        parts.append(end)
    return "".join(parts)


def ftrace(recording: Recording) -> str:
    """Return the events as the file `trace` of tracefs has them."""
    parts = [_FTRACE_HEADER]
    for event in recording.events:
        head = f"{event.process[:16]:>16}-{event.tid:<7} [{event.cpu:03d}] d.... {_time(event.time):>12}:"
        parts.append(
            f"{head} {_name(event).partition(':')[2]}: ({event.probe}) {_fields(event.values)}".rstrip() + "\n"
        )
        if event.stack:
            parts.append(f"{head} <user stack trace>\n" + "".join(f" =>  {frame}\n" for frame in event.stack))
    return "".join(parts)
