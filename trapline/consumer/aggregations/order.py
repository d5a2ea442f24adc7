"""The order of aggregations: by value or by key, forward or backward, several joined.

Source: FreeBSD libdtrace dt_aggregate.c (the comparison functions and
dtrace_aggregate_walk_joined).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emu.support.immutable import immutable
from trapline.consumer.aggregations.aggregate import Entry, scalar
from trapline.consumer.aggregations.distribution import DISTRIBUTIONS, split
from trapline.consumer.text.default_format import UNSIGNED
from trapline.consumer.text.symbols import address_pair
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trapline.consumer.aggregations.aggregate import Aggregate
    from trapline.framework.base.device import RecordDescription
    from trapline.options import Options

_PAIRS: Final = frozenset({ActionKind.UMOD, ActionKind.UADDR, ActionKind.USYM})


@immutable
class Order:
    """The order of the output.

    The fields are the options aggsortkey, aggsortrev, aggsortpos and aggsortkeypos.
    """

    by_key: bool = False
    reverse: bool = False
    position: int = 0
    key_position: int = 0

    @classmethod
    def of(cls, options: Options) -> Order:
        """Read the order from the options."""
        return cls(
            options.is_set("aggsortkey"),
            options.is_set("aggsortrev"),
            options.number("aggsortpos"),
            options.number("aggsortkeypos"),
        )

    def sorted(self, entries: Iterable[Entry]) -> list[Entry]:
        """Sort entries: by variable, then by value and key, or by key alone."""
        return sorted(entries, key=self._rank, reverse=self.reverse)

    def _rank(self, entry: Entry) -> tuple[Any, ...]:
        key = self.key_rank(entry)
        variable = entry.description.variable
        return (variable, key) if self.by_key else (variable, value_rank(entry), key)

    def key_rank(self, entry: Entry) -> tuple[Any, ...]:
        """Rank the keys from left to right, from `key_position` on; fewer keys come first."""
        keys = entry.keys
        # As dt_aggregate_keycmp has it, a position beyond the last key counts as the first.
        start = self.key_position if self.key_position < len(keys) else 0
        ranks = (_datum_rank(key, entry.data) for key in (*keys[start:], *keys[:start]))
        return (len(keys), *ranks)

    def joined(self, aggregate: Aggregate, variables: Sequence[int]) -> list[Joined]:
        """Join the entries of several aggregations that have equal keys.

        A missing value is zero.
        """
        zeros = {variable: aggregate.zero(variable) for variable in variables}
        rows: dict[tuple[bytes, ...], dict[int, Entry]] = {}
        for entry in aggregate:
            variable = entry.description.variable
            if variable in zeros:
                rows.setdefault(entry.key_bytes(), {})[variable] = entry
        present = [variable for variable in variables if zeros[variable] is not None]
        joined = []
        for row in rows.values():
            key = next(row[variable] for variable in present if variable in row)
            # An aggregation that was never assigned has no form of its own; it is shown as a zero of the first.
            values = tuple(row.get(v) or zeros[v] or zeros[present[0]] for v in variables)
            joined.append(Joined(key, tuple(value for value in values if value is not None)))
        return sorted(joined, key=self._joined_rank, reverse=self.reverse)

    def _joined_rank(self, row: Joined) -> tuple[Any, ...]:
        position = self.position if self.position < len(row.values) else 0
        values = [value_rank(entry) for entry in (*row.values[position:], *row.values[:position])]
        key = self.key_rank(row.key)
        return (key, values) if self.by_key else (values, key)


@immutable
class Joined:
    """One row of a printa() of several aggregations."""

    key: Entry
    """An entry that has the keys."""
    values: tuple[Entry, ...]
    """The value of each aggregation, in the order of the arguments."""


# The order of trunc(), whatever the options are.
BY_VALUE: Final = Order()


def value_rank(entry: Entry) -> tuple[int, ...]:
    """Rank a value: distributions by weight, then by the counts at zero."""
    if entry.action in DISTRIBUTIONS:
        buckets, counts = split(entry.action, entry.words)
        weight = sum(w * c for w, c in zip(buckets.weights, counts, strict=False) if c)
        return weight, counts[buckets.tie] if buckets.tie is not None else 0
    return (scalar(entry.action, entry.words),)


def _datum_rank(record: RecordDescription, data: bytes) -> tuple[int, Any]:
    if record.size in UNSIGNED:
        return record.size, UNSIGNED[record.size](data, record.offset)
    if record.action in _PAIRS:
        return record.size, address_pair(data, record.offset)
    return record.size, data[record.offset : record.offset + record.size]
