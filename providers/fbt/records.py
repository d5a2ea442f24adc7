"""FBT's records: a record for each patched address of each probe, in a hash table by address.

Source: FreeBSD sys/cddl/dev/fbt/fbt.h (fbt_probe_t) and fbt.c (fbt_probetab).  A record is in up to
three lists:

    hash_next     the records of one bucket
    trace_next    the records of one address (x86: one piece of code that is two functions, under
                  two names)
    probe_next    the records of one probe (a function with three returns has one probe and three
                  records)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from emu.guest.modules import Module
from emu.probe.patcher import Tracepoint

# FBT_PROBETAB_SIZE.
TABLE_SIZE = 0x8000
TABLE_MASK = TABLE_SIZE - 1


def bucket_of(address: int) -> int:
    """Return the bucket of an address (FBT_ADDR2NDX)."""
    return address >> 4 & TABLE_MASK


@dataclass(slots=True, eq=False)
class Record:
    """One patched address of one probe (fbt_probe_t)."""

    address: int
    tracepoint: Tracepoint
    saved: int
    rval: int
    roffset: int
    """Offset of a return site in its function; 0 means that this is an entry."""
    function: str
    module: Module
    load_count: int
    """The load count of the module when the record was made."""
    symbol_index: int
    probe_id: int = 0
    enabled: int = 0
    hash_next: Record | None = field(default=None, repr=False)
    trace_next: Record | None = field(default=None, repr=False)
    probe_next: Record | None = field(default=None, repr=False)

    def of_probe(self) -> Iterator[Record]:
        """Yield the records of this probe, this one first."""
        record: Record | None = self
        while record is not None:
            yield record
            record = record.probe_next

    def of_tracepoint(self) -> Iterator[Record]:
        """Yield the records that share this one's tracepoint, this one first."""
        record: Record | None = self
        while record is not None:
            yield record
            record = record.trace_next


class RecordTable:
    """The hash table (fbt_probetab)."""

    def __init__(self) -> None:
        self.buckets: list[Record | None] = [None] * TABLE_SIZE
        """First record of each bucket; trap handlers walk it themselves, being in a hurry."""

    def find(self, address: int) -> Record | None:
        """Return the first record of an address."""
        record = self.buckets[bucket_of(address)]
        while record is not None and record.address != address:
            record = record.hash_next
        return record

    def insert(self, record: Record, *, share: bool) -> None:
        """Add a record: after the first of its address if they `share`, else as the first."""
        first = self.find(record.address) if share else None
        if first is not None:
            record.trace_next = first.trace_next
            first.trace_next = record
        else:
            bucket = bucket_of(record.address)
            record.hash_next = self.buckets[bucket]
            self.buckets[bucket] = record

    def remove(self, record: Record) -> None:
        """Remove a record; the next one of its tracepoint takes its place.

        Raises RuntimeError if it is not in the table; a kernel panics then.
        """
        bucket = bucket_of(record.address)
        before: Record | None = None
        first = self.buckets[bucket]
        while first is not None and first is not record and record not in first.of_tracepoint():
            before, first = first, first.hash_next
        if first is None:
            raise RuntimeError(f"FBT has no record of {record.function} at {record.address:#x}")
        if first is not record:
            sibling = next(sibling for sibling in first.of_tracepoint() if sibling.trace_next is record)
            sibling.trace_next = record.trace_next
            return
        heir = record.trace_next
        if heir is not None:
            heir.hash_next = record.hash_next
        else:
            heir = record.hash_next
        if before is None:
            self.buckets[bucket] = heir
        else:
            before.hash_next = heir

    def __iter__(self) -> Iterator[Record]:
        for head in self.buckets:
            record = head
            while record is not None:
                yield from record.of_tracepoint()
                record = record.hash_next
