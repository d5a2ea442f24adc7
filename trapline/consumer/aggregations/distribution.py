"""Distributions: the buckets of quantize() and its relatives, and the block that shows them.

Source: FreeBSD dtrace.h (DTRACE_QUANTIZE_*, DTRACE_LQUANTIZE_*, DTRACE_LLQUANTIZE_*) and libdtrace
dt_consume.c.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

from emu.support.immutable import immutable
from emu.support.words import WORD_MASK
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_ZERO_BUCKET: Final = 63
_BUCKETS: Final = 127
_WIDTH: Final = 40
_FULL_BLOCK: Final = "\u2588"
_TITLE: Final = "------------- Distribution -------------"
# aggzoom makes the longest bar 95% of the width (DTRACE_AGGZOOM_MAX, a double): the numerator and the denominator.
ZOOM: Final = (1 / 0.95).as_integer_ratio()

DISTRIBUTIONS: Final = frozenset({ActionKind.QUANTIZE, ActionKind.LQUANTIZE, ActionKind.LLQUANTIZE})


@immutable
class Buckets:
    """The buckets of a distribution, lowest first."""

    labels: tuple[str, ...]
    edges: tuple[float, ...]
    """Lowest value of each bucket; minus infinity where there is none."""
    weights: tuple[int, ...]
    """The weight of a count in each bucket when distributions are sorted."""
    tie: int | None
    """The bucket whose count decides between distributions of equal weight; None if there is no
    such bucket."""
    unused: range
    """The rows to show when there are no counts at all."""

    def shown(self, counts: Sequence[int]) -> range:
        """Return the rows to show: one more on each side of those with counts."""
        used = [index for index, count in enumerate(counts) if count]
        if not used:
            return self.unused
        return range(max(used[0] - 1, 0), min(used[-1] + 2, len(counts)))


@cache
def quantize_value(index: int) -> int:
    """Return the value of a quantize() bucket (DTRACE_QUANTIZE_BUCKETVAL)."""
    if index == _ZERO_BUCKET:
        return 0
    return -(1 << _ZERO_BUCKET - 1 - index) if index < _ZERO_BUCKET else 1 << index - _ZERO_BUCKET - 1


@cache
def _quantize(_parameter: int) -> Buckets:
    values = tuple(quantize_value(index) for index in range(_BUCKETS))
    return Buckets(tuple(map(str, values)), values, values, _ZERO_BUCKET, range(_ZERO_BUCKET - 1, _ZERO_BUCKET + 2))


@cache
def _lquantize(parameter: int) -> Buckets:
    step, levels, base = parameter >> 48 & 0xFFFF, parameter >> 32 & 0xFFFF, parameter & 0xFFFFFFFF
    base -= (base & 0x80000000) << 1
    limit = base + levels * step
    edges = range(base, limit, step)
    weights = (base - 1, *edges, limit + 1)
    return Buckets(
        (f"< {base}", *map(str, edges), f">= {limit}"),
        (-math.inf, *edges, limit),
        weights,
        weights.index(0) if 0 in weights else None,
        range(3),
    )


@cache
def _llquantize(parameter: int) -> Buckets:
    factor, low, high, steps = (parameter >> shift & 0xFFFF for shift in (48, 32, 16, 0))
    edges: list[int] = []
    value = factor**low
    for _ in range(low, high + 1):
        following = value * factor
        magnitude = range(value, following, following // steps if following > steps else 1)
        edges.extend(magnitude)
        value = following
    return Buckets(
        (f"< {factor**low}", *map(str, edges), f">= {value}"),
        (-math.inf, *edges, value),
        (factor**low - 1, *edges, value),
        0,
        range(2),
    )


_KINDS: Final = {
    ActionKind.QUANTIZE: _quantize,
    ActionKind.LQUANTIZE: _lquantize,
    ActionKind.LLQUANTIZE: _llquantize,
}


def split(action: ActionKind, words: Sequence[int]) -> tuple[Buckets, Sequence[int]]:
    """Return the buckets and the counts of a distribution.

    Lquantize and llquantize have their parameters first.
    """
    if action is ActionKind.QUANTIZE:
        return _quantize(0), words
    return _KINDS[action](words[0] & WORD_MASK), words[1:]


@immutable
class Scale:
    """The scale of the bars of one block."""

    total: int
    positives: bool
    negatives: bool
    zoom: bool = False
    utf8: bool = False

    @classmethod
    def of(cls, counts: Sequence[int], *, zoom: bool = False, utf8: bool = False) -> Scale:
        """Measure bars by the sum of the counts, with `zoom` by the largest."""
        sizes = [abs(count) for count in counts]
        total = max(sizes, default=0) if zoom else sum(sizes)
        return cls(total, any(c > 0 for c in counts), any(c < 0 for c in counts), zoom, utf8)

    def length(self, count: int, units: int) -> tuple[int, int]:
        """Return the length of a bar in a field of `units` as a fraction."""
        if not self.zoom:
            return abs(count) * units, self.total
        numerator, denominator = ZOOM
        return abs(count) * units * denominator, self.total * numerator

    def depth(self, count: int, units: int) -> int:
        """Return the length of a bar in a field of `units`, rounded."""
        length, total = self.length(count, units)
        return (2 * length + total) // (2 * total) if total else 0

    def bar(self, count: int) -> str:
        """Draw one bar, its axis included."""
        if not self.negatives:
            return self._blocks(count) if self.utf8 and self.positives else f"|{'@' * self.depth(count, _WIDTH):<40}"
        if not self.positives:
            return f"{'@' * self.depth(count, _WIDTH):>40}|"
        half = "@" * self.depth(count, _WIDTH // 2)
        return f"{half:>20}|{'':20}" if count <= 0 else f"{'':20}|{half:<20}"

    def _blocks(self, count: int) -> str:
        length, total = self.length(count, _WIDTH * 8)
        whole, eighths = divmod(length // total, 8)
        partial = chr(0x2590 - eighths) if eighths else ""
        return f"|{_FULL_BLOCK * whole + partial:<40}"


def bar_line(count: int, normal: int, scale: Scale) -> str:
    """Draw a bar and its count; the count is normalised, the bar is not."""
    return f"{scale.bar(count)} {divide(count, normal):<9d}\n"


def heading(title: str = "value", width: int = 16) -> str:
    """Return the heading of a block, its own newline before it."""
    return f"\n{title:>{width}} {_TITLE:>41} {'count':<9}\n"


def show_distribution(
    action: ActionKind, words: Sequence[int], normal: int = 1, *, zoom: bool = False, utf8: bool = False
) -> str:
    """Show a distribution as a block: heading, and a row for each bucket that matters."""
    buckets, counts = split(action, words)
    rows = buckets.shown(counts)
    scale = Scale.of([counts[row] for row in rows], zoom=zoom, utf8=utf8)
    lines = (f"{buckets.labels[row]:>16} {bar_line(counts[row], normal, scale)}" for row in rows)
    return heading() + "".join(lines)


def divide(value: int, normal: int) -> int:
    """Normalise a value as libdtrace does: the 64-bit pattern, taken as unsigned, by the normal."""
    if normal == 1:
        return value
    quotient = (value & WORD_MASK) // normal
    return quotient - (quotient >> 63 << 64)


_PACKED_ASCII: Final = "__xxxxXX"
_PACKED_NEGATIVE: Final = "vvvvVV"
_PACKED_BLOCKS: Final = "".join(chr(0x2581 + level) for level in range(8))


@immutable
class Packing:
    """The packing of one aggregation's distributions into lines of the same buckets."""

    action: ActionKind
    buckets: Buckets
    rows: range
    zoom: bool
    utf8: bool

    @classmethod
    def of(cls, action: ActionKind, entries: Sequence[Sequence[int]], *, zoom: bool, utf8: bool) -> Packing:
        """Choose the buckets: all of lquantize, one more than any entry uses of quantize."""
        buckets = split(action, entries[0])[0]
        rows = range(len(buckets.labels))
        if action is ActionKind.QUANTIZE:
            used = {index for words in entries for index, count in enumerate(words) if count} or {_ZERO_BUCKET}
            low, high = min(used), max(used)
            rows = range(low - (low not in {0, _ZERO_BUCKET}), min(high + 1, _BUCKETS - 1) + 1)
        return cls(action, buckets, rows, zoom, utf8)

    def _ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the labels of the lowest and the highest bucket, with their widths."""
        low, high = self.buckets.labels[self.rows[0]], self.buckets.labels[self.rows[-1]]
        if self.action is not ActionKind.QUANTIZE:
            return (low, 8), (high, 8)
        return (low, max(len(low), 4)), (high, max(len(high), 4))

    def heading(self, width: int) -> str:
        """Return the heading above the first line; `width` is that of the keys."""
        (_, low), (_, high) = self._ends()
        if self.action is not ActionKind.QUANTIZE:
            low -= 1
        return f"\n{'key' if width else '':>{width}} {'min':>{low}} .{'-' * len(self.rows)}. {'max':<{high}} | count\n"

    def line(self, words: Sequence[int]) -> str:
        """Show one distribution: lowest label, a character a bucket, highest label, sum."""
        counts = split(self.action, words)[1]
        shown = [counts[row] for row in self.rows]
        scale = Scale.of(shown, zoom=self.zoom)
        (low, low_width), (high, high_width) = self._ends()
        lead = " " if self.action is ActionKind.QUANTIZE else ""
        cells = "".join(self._cell(count, scale) for count in shown)
        return f"{lead}{low:>{low_width}} :{cells}: {high:<{high_width}} | {sum(shown)}\n"

    def _cell(self, count: int, scale: Scale) -> str:
        if not count:
            return " "
        levels = _PACKED_NEGATIVE if count < 0 else _PACKED_BLOCKS if self.utf8 else _PACKED_ASCII
        return levels[scale.depth(count, len(levels) - 1)]
