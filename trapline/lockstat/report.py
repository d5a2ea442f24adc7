"""lockstat's tables.

Source of the layout: FreeBSD lockstat.c (report_stats(), report_trace(), format_symbol()).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Final

from trapline.lockstat.events import EVENTS
from trapline.lockstat.program import CPU_BASE
from trapline.lockstat.records import LockRecord

_SECOND: Final = 1_000_000_000
_RULE: Final = "-" * 79
_BAR: Final = 30
_BUCKETS: Final = 64
_CPU_END: Final = CPU_BASE << 8
_CLASSES: Final = ("", "Intr", "RealT", "TShar", "Idle")
# The largest number of frames below the caller in a stack; they are not shown.
_BELOW: Final = 3

# Address -> its symbol, the offset in it, and the symbol's size; None: it is not in a symbol.
Locate = Callable[[int], tuple[str, int, int] | None]


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """The layout of the report."""

    elapsed: int
    """Traced time in nanoseconds."""
    timing: bool = True
    histogram: bool = False
    stack: bool = False
    rates: bool = False
    parsable: bool = False
    by_time: bool = False
    generated: bool = False
    sizes: bool = False
    """Whether a lock that is a whole symbol is shown with its size."""
    any_caller: bool = False
    any_lock: bool = False
    data: bool = False
    """Whether rows are objects for JSON, and no tables."""
    top: int | None = None
    """The number of rows for each event; None: all."""


class Report:
    """Shows records as lines."""

    def __init__(self, layout: ReportLayout, locate: Locate) -> None:
        self._layout = layout
        self._locate = locate

    def rows(self, records: Iterable[LockRecord]) -> Iterator[dict[str, object]]:
        """Yield records as objects for JSON, in their order; docs/export.md describes the fields."""
        layout = self._layout
        shown: Counter[int] = Counter()
        for record in records:
            shown[record.event] += 1
            if layout.top is not None and shown[record.event] > layout.top:
                continue
            event = EVENTS[record.event]
            row: dict[str, object] = {"event": event.number, "kind": event.kind.name.lower(), "what": event.description}
            row |= {"lock": self._symbol(record.lock), "caller": self._symbol(record.caller), "count": record.count}
            if layout.timing:
                row["nsec"] = record.time
            if layout.histogram:
                row["histogram"] = {str(1 << power >> 1): times for power, times in sorted(record.histogram.items())}
            if layout.stack:
                row["stack"] = [self._symbol(frame) for frame in record.stack]
            yield row

    def tables(self, records: Sequence[LockRecord], gathered: Sequence[LockRecord]) -> Iterator[str]:
        """Show records, sorted, a table for each event; shares are of all that was `gathered`."""
        for event, group in groupby(records, key=lambda record: record.event):
            whole = [record for record in gathered if record.event == event]
            count, time = sum(record.count for record in whole), sum(record.time for record in whole)
            yield from self._table(event, list(group), count, time)

    def trace(self, records: Sequence[LockRecord]) -> Iterator[str]:
        """Show each event by itself."""
        if not self._layout.parsable:
            yield f"{'Event':>5}  {'Time':>7}  {'Owner':>11}  {'Lock':<24}  {'Caller':<24}"
            yield _RULE
        for record in records:
            lock, caller = self._symbol(record.lock), self._symbol(record.caller)
            yield f"{record.event:2}  {record.time:10}  {'0x0':>11}  {lock:<24}  {caller:<24}"
            if self._layout.stack:
                yield from (f"{'':53}  {self._symbol(pc):<24}" for pc in _above(record))
                yield ""

    def _table(self, event: int, records: Sequence[LockRecord], count: int, time: int) -> Iterator[str]:
        layout, info = self._layout, EVENTS[event]
        if layout.top == 0:
            yield f"{self._rate(count) if layout.rates else count:20} {info.description}"
            return
        if not layout.parsable:
            seconds = layout.elapsed / _SECOND
            yield ""
            yield f"{info.description}: {count} events in {seconds:.3f} seconds ({count / seconds:.0f} events/sec)"
            yield ""
            if not layout.histogram:
                yield self._header(event)
                yield _RULE
        so_far = 0.0
        for record in records[: layout.top]:
            if layout.parsable:
                yield self._parsable(record)
                continue
            share = record.time * 100 / time if layout.by_time and time else record.count * 100 / count
            so_far += share
            if layout.histogram:
                yield _RULE
                yield self._header(event)
            yield self._line(record, share, so_far)
            if layout.histogram:
                yield from self._histogram(record)
        if not layout.parsable:
            yield _RULE

    def _header(self, event: int) -> str:
        layout, info = self._layout, EVENTS[event]
        count = "ops/s" if layout.rates else "Count"
        share = "genr" if layout.generated else "indv"
        lock = ("Hottest " if layout.any_lock else "") + info.header
        caller = ("Hottest " if layout.any_caller else "") + "Caller"
        units = info.units if layout.timing else ""
        return f"{count:>5} {share:>4} {'cuml':>4} {'rcnt':>4} {units:>8} {lock:<22} {caller:<24}"

    def _line(self, record: LockRecord, share: float, so_far: float) -> str:
        layout = self._layout
        count = self._rate(record.count) if layout.rates else record.count
        cumulated = "----" if layout.generated else f"{so_far:3.0f}%"
        mean = str(record.time // record.count) if layout.timing else ""
        lock, caller = self._symbol(record.lock, size=layout.sizes), self._symbol(record.caller)
        # No event counts references: their number is always 0.
        return f"{count:5} {share:3.0f}% {cumulated} {0:4.2f} {mean:>8} {lock:<22} {caller:<24}"

    def _histogram(self, record: LockRecord) -> Iterator[str]:
        layout, units = self._layout, EVENTS[record.event].units
        yield ""
        count = "ops/s" if layout.rates else "count"
        yield f"{units:>10} {'------ Time Distribution ------':>31} {count:<9} {'Stack' if layout.stack else '':<24}"
        total = record.histogram.total()
        bins = range(min(record.histogram, default=0), max(record.histogram, default=-1) + 1)
        stack = [self._symbol(pc) for pc in _above(record)] if layout.stack else []
        for power, frame in zip_longest(bins, stack):
            if power is None:
                yield f"{'':>15} {'':<36} {frame:<24}"
                continue
            number = record.histogram[power]
            shown = self._rate(number) if layout.rates else number
            line = f"{1 << power:10} |{'@' * (number * _BAR // total):<{_BAR}} {shown:<9} "
            yield line if frame is None else f"{line}{frame:<24}"

    def _parsable(self, record: LockRecord) -> str:
        layout = self._layout
        words = [
            str(record.event),
            str(record.count),
            self._symbol(record.lock, size=layout.sizes),
            self._symbol(record.caller),
            f"{0:f}",
        ]
        if layout.timing:
            words.append(str(record.time))
        if layout.histogram:
            words += [str(record.histogram[power]) for power in range(_BUCKETS)]
        return " ".join((*words, *map(self._symbol, record.stack)))

    def _rate(self, count: int) -> int:
        return count * _SECOND // self._layout.elapsed

    def _symbol(self, address: int, *, size: bool = False) -> str:
        """Name an address: symbol, symbol+0x12, symbol[size], cpu[0]+class, or the number."""
        if CPU_BASE <= address < _CPU_END and address & 0xFFFF < len(_CLASSES):
            return f"cpu[{address - CPU_BASE >> 16}]+{_CLASSES[address & 0xFFFF]}"
        found = self._locate(address)
        if found is None:
            return f"{address:#x}"
        name, offset, length = found
        if not offset:
            return f"{name}[{length}]" if size else name
        return f"{name}+{offset:#x}" if offset <= length else f"{address:#x}"


def _above(record: LockRecord) -> tuple[int, ...]:
    """Return the stack from the caller on."""
    below = next((depth for depth in range(_BELOW, 0, -1) if record.stack[depth : depth + 1] == (record.caller,)), 0)
    return record.stack[below:]
