"""Chrome's trace event format, which Perfetto reads too.

Entry and return of a function or a system call are a slice of its thread, other probes are
instants, and aggregations are counters at the end of the trace.  Context switches, if the trace has
`sched:::on-cpu` and `sched:::off-cpu`, are slices of a track for each CPU.

Source: Google, "Trace Event Format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from trapline.export.events import Phase, Recording, Value, cell, plain, running, slices

# The process of the tracks that show who runs on each CPU; no process of a guest has the number.
_CPUS: Final = -1


def _arguments(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def document(recording: Recording) -> str:
    """Return the file.  Times are in microseconds, with the nanoseconds behind the point."""
    rows: list[dict[str, Any]] = []
    for pid, process in dict.fromkeys((event.pid, event.process) for event in recording.events):
        rows.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}})
    matched = sorted(slices(recording), key=lambda one: (one.entry.time, one.depth))
    for one in matched:
        values = _arguments(one.entry.values)
        if one.values:
            values["return"] = _arguments(one.values)
        rows.append(
            {
                "ph": "X",
                "name": one.entry.title,
                "cat": one.entry.provider,
                "ts": one.entry.time / 1000,
                "dur": (one.end - one.entry.time) / 1000,
                "pid": one.entry.pid,
                "tid": one.entry.tid,
                "args": values,
            }
        )
    rows.extend(
        {
            "ph": "i",
            "s": "t",
            "name": event.probe,
            "cat": event.provider,
            "ts": event.time / 1000,
            "pid": event.pid,
            "tid": event.tid,
            "args": _arguments(event.values),
        }
        for event in recording.events
        if event.phase is Phase.INSTANT
    )
    switches = list(running(recording))
    if switches:
        rows.append({"ph": "M", "name": "process_name", "pid": _CPUS, "tid": 0, "args": {"name": "CPUs"}})
    rows.extend(
        {
            "ph": "X",
            "name": one.process,
            "cat": "sched",
            "ts": one.start / 1000,
            "dur": (one.end - one.start) / 1000,
            "pid": _CPUS,
            "tid": one.cpu,
            "args": {"pid": one.pid, "tid": one.tid},
        }
        for one in switches
    )
    for count in recording.counts:
        keys = ", ".join(str(cell(key)) for key in count.keys)
        value = sum(count.value.values()) if isinstance(count.value, Mapping) else count.value
        rows.append(
            {"ph": "C", "name": f"@{count.name}", "ts": recording.end / 1000, "pid": 0, "tid": 0,
             "args": {keys or count.function: value}}
        )  # fmt: skip
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"}, ensure_ascii=False) + "\n"
