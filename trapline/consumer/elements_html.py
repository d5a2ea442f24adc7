"""Aggregations as tables with bars, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, TypeAlias

# (the aggregation's name, keys, value): an element of `trapline.consumer.elements`.
_Element: TypeAlias = tuple[str, tuple[Any, ...], int | dict[float, int]]

# Pixels of the longest bar.
_BAR: Final = 200
_CELL: Final = "text-align:left;padding:0 1em 0 0;font-family:monospace;white-space:pre-wrap"
_STYLE: Final = "display:inline-block;height:0.8em;background:#4878a8;width"


def tables(elements: Sequence[_Element], functions: Mapping[str, str]) -> str:
    """Return a table in HTML for each aggregation: keys, values, bars.

    `functions`: the aggregating functions by the name of the aggregation.
    """
    names = dict.fromkeys(name for name, _, _ in elements)
    return "".join(_table(name, functions.get(name, ""), [one for one in elements if one[0] == name]) for name in names)


def _table(name: str, function: str, elements: Sequence[_Element]) -> str:
    title = f"@{escape(name)} {escape(function)}"
    highest = max((_weight(value) for _, _, value in elements), default=0)
    rows = "".join(_row(keys, value, highest) for _, keys, value in elements)
    return f'<table><caption style="text-align:left">{title}</caption>{rows}</table>'


def _weight(value: int | dict[float, int]) -> int:
    return max((abs(count) for count in value.values()), default=0) if isinstance(value, dict) else abs(value)


def _bar(value: int, highest: int) -> str:
    width = round(_BAR * abs(value) / highest) if highest else 0
    return f'<span style="{_STYLE}:{width}px"></span>'


def _row(values: tuple[Any, ...], value: int | dict[float, int], highest: int) -> str:
    keys = "".join(f'<td style="{_CELL}">{escape(_text(key))}</td>' for key in values)
    if not isinstance(value, dict):
        return f'<tr>{keys}<td style="{_CELL}">{value}</td><td>{_bar(value, highest)}</td></tr>'
    lines = "".join(
        f'<tr><td style="{_CELL}">{low}</td><td>{_bar(count, highest)}</td><td style="{_CELL}">{count}</td></tr>'
        for low, count in value.items()
    )
    return f"<tr>{keys}<td><table>{lines}</table></td></tr>"


def _text(key: Any) -> str:
    if isinstance(key, tuple):
        return "\n".join(getattr(frame, "name", str(frame)) for frame in key)
    return key if isinstance(key, str) else str(key)
