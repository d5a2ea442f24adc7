"""Aggregations as tables with bars, for a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from trapline.consumer.elements import Aggregations, Element

# Pixels of the longest bar.
_BAR: Final = 200
_CELL: Final = "text-align:left;padding:0 1em 0 0;font-family:monospace"
_STYLE: Final = "display:inline-block;height:0.8em;background:#4878a8;width"


def tables(elements: Aggregations) -> str:
    """Return a table in HTML for each aggregation: keys, values, bars."""
    names = dict.fromkeys(element.name for element in elements)
    return "".join(_table(name, elements) for name in names)


def _table(name: str, elements: Aggregations) -> str:
    own = [element for element in elements if element.name == name]
    title = f"@{escape(name)} {escape(elements.functions.get(name, ''))}"
    highest = max((_weight(element.value) for element in own), default=0)
    rows = "".join(_row(element, highest) for element in own)
    return f'<table><caption style="text-align:left">{title}</caption>{rows}</table>'


def _weight(value: int | dict[float, int]) -> int:
    return max((abs(count) for count in value.values()), default=0) if isinstance(value, dict) else abs(value)


def _bar(value: int, highest: int) -> str:
    width = round(_BAR * abs(value) / highest) if highest else 0
    return f'<span style="{_STYLE}:{width}px"></span>'


def _row(element: Element, highest: int) -> str:
    keys = "".join(f'<td style="{_CELL}">{escape(_text(key))}</td>' for key in element.keys)
    if not isinstance(element.value, dict):
        return f'<tr>{keys}<td style="{_CELL}">{element.value}</td><td>{_bar(element.value, highest)}</td></tr>'
    lines = "".join(
        f'<tr><td style="{_CELL}">{low}</td><td>{_bar(count, highest)}</td><td style="{_CELL}">{count}</td></tr>'
        for low, count in element.value.items()
    )
    return f"<tr>{keys}<td><table>{lines}</table></td></tr>"


def _text(key: Any) -> str:
    if isinstance(key, tuple):
        return "\n".join(getattr(frame, "name", str(frame)) for frame in key)
    return key if isinstance(key, str) else str(key)
