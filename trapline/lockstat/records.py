"""The gathered data: a record for each event, lock, caller and stack; and merging of records.

Source: FreeBSD lockstat.c (lsrec_t, coalesce(), main()).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class LockRecord:
    """Events that are counted in one row."""

    event: int
    lock: int
    caller: int
    count: int = 1
    time: int = 0
    """Sum of all."""
    histogram: Counter[int] = field(default_factory=Counter)
    """The number of events by duration: at least a power of two, and less than twice that."""
    stack: tuple[int, ...] = ()

    def merged(self, other: LockRecord) -> LockRecord:
        """Return this record with another's counts."""
        return replace(
            self,
            count=self.count + other.count,
            time=self.time + other.time,
            histogram=self.histogram + other.histogram,
        )


@dataclass(frozen=True, slots=True)
class Coalescing:
    """The differences between records that are ignored; each field is the flag of that name."""

    locks: bool = False
    """-c: locks of one symbol are one."""
    functions: bool = False
    """-k: addresses in one function are one."""
    generated: bool = False
    """-g: each function on the stack has the event."""
    any_caller: bool = False
    """-w"""
    any_lock: bool = False
    """-W"""


def coalesce(records: Iterable[LockRecord], how: Coalescing, start: Callable[[int], int]) -> list[LockRecord]:
    """Merge records that differ only in ignored fields.

    `start` gives the address of the symbol an address is in.  For an ignored caller or lock, that
    of the record with the highest count is kept.
    """
    found = list(records)
    if how.generated:
        found = _merge((one for record in found for one in _generated(record)), _all)
    if how.locks or how.functions:
        found = _merge((_shortened(record, how, start) for record in found), _all)
    if how.any_caller:
        found = _merge(_hottest(found), lambda record: (record.event, record.lock))
    if how.any_lock:
        found = _merge(_hottest(found), lambda record: (record.event, record.stack, record.caller))
    return found


def in_order(records: Iterable[LockRecord], *, by_time: bool) -> list[LockRecord]:
    """Sort records by event, then by time or by count, the greatest first."""
    return sorted(records, key=lambda record: (record.event, -(record.time if by_time else record.count)))


def _all(record: LockRecord) -> Any:
    return record.event, record.stack, record.caller, record.lock


def _hottest(records: Iterable[LockRecord]) -> list[LockRecord]:
    return sorted(records, key=lambda record: -record.count)


def _merge(records: Iterable[LockRecord], key: Callable[[LockRecord], Any]) -> list[LockRecord]:
    merged: dict[Any, LockRecord] = {}
    for record in records:
        known = merged.get(key(record))
        merged[key(record)] = record if known is None else known.merged(record)
    return list(merged.values())


def _generated(record: LockRecord) -> Iterable[LockRecord]:
    """Add the record to its caller and to each function on the stack."""
    callers = record.stack if record.caller in record.stack else (*record.stack, record.caller)
    return (replace(record, caller=caller, stack=(), histogram=Counter()) for caller in callers)


def _shortened(record: LockRecord, how: Coalescing, start: Callable[[int], int]) -> LockRecord:
    if how.locks:
        record = replace(record, lock=start(record.lock))
    if how.functions:
        record = replace(record, caller=start(record.caller), stack=tuple(map(start, record.stack)))
    return record
