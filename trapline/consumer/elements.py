"""Aggregations as plain Python data, which a notebook shows as tables with bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from trapline.consumer.aggregations.aggregate import plain_value
from trapline.consumer.aggregations.order import Order
from trapline.consumer.records.values import value_reader

if TYPE_CHECKING:
    from trapline.consumer.session import Session


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
        """Return a table for each aggregation: keys, values, bars."""
        from trapline.consumer.elements_html import tables  # noqa: PLC0415  for notebooks

        return tables(self, self.functions)


def aggregations(session: Session) -> Aggregations:
    """Return the current aggregations of a session."""
    elements, functions = [], {}
    for entry in Order.of(session.options).sorted(session.aggregate):
        name = session.aggregation_names.get(entry.description.variable, "")
        keys = tuple(value_reader(key, session.symbols)(entry.data, 0) for key in entry.keys)
        elements.append(Element(name, keys, plain_value(entry.action, entry.words, entry.normal)))
        functions[name] = entry.action.name.lower()
    return Aggregations(elements, functions)
