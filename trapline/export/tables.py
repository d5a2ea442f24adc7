"""Tables: CSV, and Parquet (extra `parquet`).

A trace that recorded events is a table of events; one that only aggregated is a table of the
elements of aggregations.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any, Final

from trapline.export.events import ExportError, Recording, cell

_EVENT: Final = ("time", "cpu", "pid", "tid", "process", "provider", "module", "function", "name")


def rows(recording: Recording) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns and the rows."""
    return _events(recording) if recording.events else _counts(recording)


def _events(recording: Recording) -> tuple[list[str], list[dict[str, Any]]]:
    values = dict.fromkeys(name for event in recording.events for name in event.values)
    found = [
        {column: getattr(event, column) for column in _EVENT}
        | {name: cell(value) for name, value in event.values.items()}
        for event in recording.events
    ]
    return [*_EVENT, *values], found


def _counts(recording: Recording) -> tuple[list[str], list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []
    most = max((len(count.keys) for count in recording.counts), default=0)
    for count in recording.counts:
        row: dict[str, Any] = {"aggregation": f"@{count.name}", "function": count.function}
        row |= {f"key{number}": cell(key) for number, key in enumerate(count.keys, 1)}
        if isinstance(count.value, Mapping):
            found.extend({**row, "bucket": low, "value": value} for low, value in count.value.items())
        else:
            found.append({**row, "bucket": None, "value": count.value})
    return ["aggregation", "function", *(f"key{n}" for n in range(1, most + 1)), "bucket", "value"], found


def as_csv(recording: Recording) -> str:
    """Return the table as CSV."""
    columns, found = rows(recording)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def as_parquet(recording: Recording) -> bytes:
    """Return the table as a Parquet file.  Raises `ExportError` without pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ExportError("Parquet needs pyarrow: pip install 'trapline[parquet]'") from None
    columns, found = rows(recording)
    content = {}
    for column in columns:
        values = [row.get(column) for row in found]
        texts = any(isinstance(value, str) for value in values)
        # If a column has numbers and texts, all become texts; so does a number that a column of numbers cannot hold.
        content[column] = [None if value is None else str(value) for value in values] if texts else values
    sink = io.BytesIO()
    parquet.write_table(pa.table(content), sink)
    return sink.getvalue()
