"""JSON lines: one object for each event, then one for each element of an aggregation."""

from __future__ import annotations

import json

from trapline.export.events import Recording
from trapline.export.plain import count_row, event_row


def lines(recording: Recording) -> str:
    """Return the file."""
    rows = [*map(event_row, recording.events), *map(count_row, recording.counts)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
