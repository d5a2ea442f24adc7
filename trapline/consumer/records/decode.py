"""Decoding of principal buffers: the order of records.

Source: FreeBSD dtrace.h (the header of a record) and libdtrace dt_consume.c (dtrace_consume).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from trapline.framework.base.device import BufferSnapshot

_HEADER: Final = struct.Struct("<III")
_EPID_SIZE: Final = 4
# Padding, or "no record" (DTRACE_EPIDNONE).
NO_EPID: Final = 0


class BufferRecord(NamedTuple):
    """One record of a buffer."""

    timestamp: int
    cpu: int
    epid: int
    data: bytes
    """The buffer it lies in."""
    offset: int
    """Its start in the buffer; the offsets of its data are relative to it."""
    following: int
    """EPID of the next record of this buffer, `NO_EPID` after the last."""


class Turn(IntEnum):
    """The order of records apart from their time: BEGIN comes first and END last."""

    BEGIN = 0
    OTHER = 1
    END = 2


def decode(snapshot: BufferSnapshot, size_of: Callable[[int], int]) -> list[BufferRecord]:
    """Decode a buffer; `size_of` returns the size of an EPID's records.

    EPID 0 is four bytes of padding.
    """
    data, cpu = snapshot.data, snapshot.cpu
    found: list[tuple[int, int, int]] = []
    offset, end = 0, len(data) - _HEADER.size
    while offset <= end:
        epid, high, low = _HEADER.unpack_from(data, offset)
        if epid == NO_EPID:
            offset += _EPID_SIZE
            continue
        found.append((high << 32 | low, epid, offset))
        offset += size_of(epid)
    epids = [epid for _, epid, _ in found[1:]] + [NO_EPID]
    return [
        BufferRecord(timestamp, cpu, epid, data, start, following)
        for (timestamp, epid, start), following in zip(found, epids, strict=False)
    ]


def merge(
    buffers: Sequence[Iterable[BufferRecord]], turn: Callable[[BufferRecord], Turn], *, temporal: bool
) -> list[BufferRecord]:
    """Put the records of all CPUs in the order of output: by time, or CPU by CPU.

    Snapshots of all CPUs are taken at one instant of virtual time, so no record has to wait for
    those of another CPU.
    """
    records = [record for buffer in buffers for record in buffer]
    if temporal and len(buffers) > 1:
        records.sort(key=lambda record: (turn(record), record.timestamp))
    elif len(buffers) > 1:
        records.sort(key=turn)
    return records
