"""Values as the types of JSON and of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trapline.export.events import Count, Event, Value


def plain(value: Value) -> Any:
    """Return a value as JSON has it: bytes in hexadecimal, a stack as a list."""
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, tuple) else value


def cell(value: Value) -> str | int:
    """Return a value as one cell of a table: a stack with its outermost frame first."""
    if isinstance(value, tuple):
        return ";".join(reversed(value))
    return value.hex() if isinstance(value, bytes) else value


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
