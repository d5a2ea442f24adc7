"""Aggregations as plain Python data, which a notebook shows as tables with bars."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trapline.consumer.aggregate import plain_value
from trapline.consumer.order import Order
from trapline.consumer.values import value_reader

if TYPE_CHECKING:
    from trapline.consumer.session import Session

# Pixels of the longest bar.
_BAR: Final = 200
_CELL: Final = "text-align:left;padding:0 1em 0 0;font-family:monospace"
_STYLE: Final = "display:inline-block;height:0.8em;background:#4878a8;width"


class Element(NamedTuple):
    """One element of an aggregation."""

    name: str
    """Name of the aggregation, without `@`."""
    keys: tuple[Any, ...]
    value: int | dict[float, int]
    """A number; a distribution is a dict from the lowest value of a bucket to its count."""


class Aggregations(list[Element]):
    """Elements in the order dtrace(1) prints them.

    `functions` are the aggregating functions by name.
    """

    def __init__(self, elements: Iterable[Element] = (), functions: dict[str, str] | None = None) -> None:
        super().__init__(elements)
        self.functions = functions or {}

    def _repr_html_(self) -> str:
        """Give a table for each aggregation: keys, values, bars."""
        names = dict.fromkeys(element.name for element in self)
        return "".join(self._table(name, [one for one in self if one.name == name]) for name in names)

    def _table(self, name: str, elements: list[Element]) -> str:
        title = f"@{escape(name)} {escape(self.functions.get(name, ''))}"
        highest = max((_weight(element.value) for element in elements), default=0)
        rows = "".join(_row(element, highest) for element in elements)
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


def aggregations(session: Session) -> Aggregations:
    """Return the current aggregations of a session."""
    elements, functions = [], {}
    for entry in Order.of(session.options).sorted(session.aggregate):
        name = session.aggregation_names.get(entry.description.variable, "")
        keys = tuple(value_reader(key, session.symbols)(entry.data, 0) for key in entry.keys)
        elements.append(Element(name, keys, plain_value(entry.action, entry.words, entry.normal)))
        functions[name] = entry.action.name.lower()
    return Aggregations(elements, functions)
