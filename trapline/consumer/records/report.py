"""Aggregations printed: printa() with and without a format, and the dump at the end of tracing.

Source: FreeBSD libdtrace dt_consume.c (dt_print_datum, dt_print_aggs) and dt_aggregate.c
(dt_aggregate_total).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trapline.consumer.aggregations.aggregate import Entry, scalar
from trapline.consumer.aggregations.distribution import (
    DISTRIBUTIONS,
    ZOOM,
    Packing,
    Scale,
    bar_line,
    divide,
    heading,
    show_distribution,
)
from trapline.consumer.aggregations.order import Order
from trapline.consumer.records.printf import USER_STACKS, RowFormat
from trapline.consumer.text.columns import pad
from trapline.consumer.text.default_format import COLUMNS, KEY_WIDTH, UNSIGNED, show_bytes
from trapline.consumer.text.symbols import DEFAULT_INDENT, Symbols, address_pair, show_frames
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trapline.consumer.aggregations.aggregate import Aggregate
    from trapline.framework.base.device import RecordDescription
    from trapline.framework.device.printf import Piece
    from trapline.options import Options

# Column of a string key with agghist or aggpack.
_COMPACT: Final = 16
_TOTALLED: Final = frozenset({ActionKind.COUNT, ActionKind.SUM, ActionKind.AVG, ActionKind.STDDEV})
_PACKABLE: Final = frozenset({ActionKind.QUANTIZE, ActionKind.LQUANTIZE})
SYMBOLIC: Final = frozenset({ActionKind.SYM, ActionKind.MOD, ActionKind.USYM, ActionKind.UMOD, ActionKind.UADDR})


def show_symbol(record: RecordDescription, data: bytes, offset: int, symbols: Symbols) -> str:
    """Name the address of a sym(), mod(), usym(), umod() or uaddr() record."""
    match record.action:
        case ActionKind.SYM:
            return symbols.kernel_symbol(UNSIGNED[8](data, offset))
        case ActionKind.MOD:
            return symbols.kernel_module(UNSIGNED[8](data, offset))
        case ActionKind.USYM:
            return symbols.user_symbol(*address_pair(data, offset))
        case ActionKind.UMOD:
            return symbols.user_module(*address_pair(data, offset))
        case _:
            return symbols.user(*address_pair(data, offset))


class Report:
    """Prints the aggregations of a consumer by its options."""

    def __init__(self, aggregate: Aggregate, symbols: Symbols, options: Options) -> None:
        self._aggregate = aggregate
        self._symbols = symbols
        self._options = options

    def unprinted(self) -> str:
        """Show every aggregation that printa() has not shown (dtrace_aggregate_print)."""
        printed = self._aggregate.printed
        return self._rows(entry for entry in self._aggregate if entry.description.id not in printed)

    def default(self, variables: Sequence[int]) -> str:
        """Show aggregations as printa() without a format does."""
        if len(variables) == 1:
            entries = self._aggregate.variable(variables[0])
            self._mark(entries)
            return "\n" + self._rows(entries)
        text = ["\n"]
        for row in Order.of(self._options).joined(self._aggregate, variables):
            self._mark(row.values)
            values = "".join(self._value(entry) for entry in row.values)
            text.append(f"{self._keys(row.key)}{values}\n")
        return "".join(text)

    def formatted(self, pieces: Sequence[Piece], variables: Sequence[int]) -> str:
        """Show aggregations by a format, once per row."""
        order = Order.of(self._options)
        rows: list[tuple[Entry, tuple[Entry, ...]]]
        if len(variables) == 1:
            rows = [(entry, (entry,)) for entry in order.sorted(self._aggregate.variable(variables[0]))]
        else:
            rows = [(row.key, row.values) for row in order.joined(self._aggregate, variables)]
        formats: dict[int, RowFormat] = {}
        text = []
        for key, values in rows:
            # Clauses that assign the same aggregation may have different layouts of its keys.
            number = key.description.id
            if number not in formats:
                formats[number] = RowFormat(pieces, key.keys, self._symbols, self._block)
            text.append(formats[number].row(key, values))
            self._mark(values)
        return "".join(text)

    def _mark(self, entries: Iterable[Entry]) -> None:
        self._aggregate.printed.update(entry.description.id for entry in entries)

    def _rows(self, entries: Iterable[Entry]) -> str:
        """Show the rows of one aggregation after the other, each in its own form."""
        by_variable: dict[int, list[Entry]] = {}
        for entry in Order.of(self._options).sorted(entries):
            by_variable.setdefault(entry.description.variable, []).append(entry)
        return "".join(text for group in by_variable.values() for text in self._group(group))

    def _group(self, entries: list[Entry]) -> Iterator[str]:
        action = entries[0].action
        if self._options.is_set("agghist") and action in _TOTALLED:
            return self._histogram(entries)
        if self._options.is_set("aggpack") and action in _PACKABLE:
            return self._packed(action, entries)
        return (f"{self._keys(entry)}{self._value(entry)}\n" for entry in entries)

    def _histogram(self, entries: list[Entry]) -> Iterator[str]:
        """Show numbers as bars (agghist), measured by their sum over the whole aggregation."""
        variable = entries[0].description.variable
        numbers = [scalar(entry.action, entry.words) for entry in self._aggregate.variable(variable)]
        sizes = [abs(number) for number in numbers]
        total = max(sizes) * ZOOM[0] // ZOOM[1] if self._options.is_set("aggzoom") else sum(sizes)
        scale = Scale(
            total,
            any(n > 0 for n in numbers),
            any(n < 0 for n in numbers),
            utf8=self._options.text("encoding") == "utf8",
        )
        width = _keys_width(entries[0])
        yield heading("key", width) if width else heading()
        for entry in entries:
            line = bar_line(scalar(entry.action, entry.words), entry.normal, scale)
            yield f"{self._keys(entry, _COMPACT)} {line}"

    def _packed(self, action: ActionKind, entries: list[Entry]) -> Iterator[str]:
        """Show distributions one to a line (aggpack)."""
        everything = [entry.words for entry in self._aggregate.variable(entries[0].description.variable)]
        options = self._options
        # Only option encoding=ascii keeps libdtrace from packing with block characters.
        packing = Packing.of(
            action, everything, zoom=options.is_set("aggzoom"), utf8=options.text("encoding") != "ascii"
        )
        yield packing.heading(_keys_width(entries[0]))
        for entry in entries:
            yield self._keys(entry, _COMPACT) + packing.line(entry.words)

    def _keys(self, entry: Entry, width: int = KEY_WIDTH) -> str:
        return "".join(self._key(record, entry.data, width) for record in entry.keys)

    def _key(self, record: RecordDescription, data: bytes, width: int) -> str:
        offset, size = record.offset, record.size
        if record.action in SYMBOLIC:
            return "  " + pad(show_symbol(record, data, offset, self._symbols), KEY_WIDTH)
        if record.action is ActionKind.STACK or record.action in USER_STACKS:
            frames = self._symbols.frames(record, data, offset, user=record.action in USER_STACKS)
            return show_frames(frames, self._options.number("stackindent", DEFAULT_INDENT))
        if size in COLUMNS:
            return COLUMNS[size].text(data, offset)
        return show_bytes(data[offset : offset + size], width, raw=self._options.is_set("rawbytes"))

    def _value(self, entry: Entry) -> str:
        action = entry.action
        if action in DISTRIBUTIONS:
            return self._block(entry)
        number = scalar(action, entry.words, entry.normal)
        if action not in {ActionKind.AVG, ActionKind.STDDEV}:
            number = divide(number, entry.normal)
        return f" {number:16d}"

    def _block(self, entry: Entry) -> str:
        return show_distribution(
            entry.action,
            entry.words,
            entry.normal,
            zoom=self._options.is_set("aggzoom"),
            utf8=self._options.text("encoding") == "utf8",
        )


def _keys_width(entry: Entry) -> int:
    """Return the width of the key columns with agghist or aggpack."""
    return sum((COLUMNS[key.size].width if key.size in COLUMNS else _COMPACT) + 1 for key in entry.keys if key.size)
