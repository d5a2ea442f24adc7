"""JSON lines: one object for each event, then one for each element of an aggregation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trapline.export.events import Count, Event, Recording, plain


def lines(recording: Recording) -> str:
    """Return the file."""
    rows = [*map(event_row, recording.events), *map(count_row, recording.counts)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def event_row(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object."""
    return {
        "type": "event",
        "time": event.time,
        "cpu": event.cpu,
        "pid": event.pid,
        "tid": event.tid,
        "process": event.process,
        "provider": event.provider,
        "module": event.module,
        "function": event.function,
        "name": event.name,
        "values": {name: plain(value) for name, value in event.values.items()},
    }


def count_row(count: Count) -> dict[str, Any]:
    """Return an element of an aggregation as a JSON object."""
    value = [[low, n] for low, n in count.value.items()] if isinstance(count.value, Mapping) else count.value
    return {
        "type": "aggregation",
        "name": f"@{count.name}",
        "function": count.function,
        "keys": [plain(key) for key in count.keys],
        "value": value,
    }
