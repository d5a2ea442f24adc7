"""Perfetto's own format: protocol buffers, with the same slices, instants and counters as Chrome's.

The classes are those of Perfetto's package (`pip install 'trapline[perfetto]'`).

Source: Perfetto, protos/perfetto/trace/track_event/track_event.proto and track_descriptor.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trapline.export.events import (
    Count,
    Event,
    ExportError,
    Phase,
    Recording,
    Slice,
    Value,
    cell,
    plain,
    running,
    slices,
)

# One writer of packets, and tracks that are numbered by what they show.
_SEQUENCE: Final = 1
_CPUS: Final = 1 << 62
_COUNTERS: Final = 1 << 61


class _Writer:
    """Builds a trace, in the order of the times."""

    def __init__(self, protos: Any) -> None:
        self._protos = protos
        self.trace = protos.Trace()
        self._tracks: dict[tuple[int, int], int] = {}
        self._timed: list[tuple[int, int, Any]] = []

    def describe(self, number: int, **fields: Any) -> Any:
        packet = self.trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
        packet.track_descriptor.uuid = number
        for name, value in fields.items():
            setattr(packet.track_descriptor, name, value)
        return packet.track_descriptor

    def thread(self, pid: int, tid: int, process: str) -> int:
        """Return the track of a thread, which is described at its first use."""
        if (pid, tid) not in self._tracks:
            number = self._tracks[pid, tid] = len(self._tracks) + 1
            # Perfetto's numbers of threads are those of the whole machine, of 31 bits.
            described = self.describe(number)
            described.thread.pid, described.thread.tid = pid, tid
            described.thread.thread_name = process
        return self._tracks[pid, tid]

    def event(self, kind: str, time: int, track: int, order: int = 0, **fields: Any) -> Any:
        """Add an event of a track; of events at one time those with a lower `order` come first."""
        packet = self._protos.TracePacket(timestamp=time, trusted_packet_sequence_id=_SEQUENCE)
        made = packet.track_event
        made.type = getattr(self._protos.TrackEvent, f"TYPE_{kind}")
        made.track_uuid = track
        for name, value in fields.items():
            setattr(made, name, value)
        self._timed.append((time, order, packet))
        return made

    def annotate(self, made: Any, values: Mapping[str, Value]) -> None:
        for name, value in values.items():
            annotation = made.debug_annotations.add(name=name)
            shown = plain(value)
            if isinstance(shown, int):
                annotation.int_value = shown
            else:
                annotation.string_value = str(shown)

    def data(self) -> bytes:
        for _, _, packet in sorted(self._timed, key=lambda one: one[:2]):
            self.trace.packet.append(packet)
        return bytes(self.trace.SerializeToString())


def data(recording: Recording) -> bytes:
    """Return the file.  Raises `ExportError` without Perfetto's package."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos  # noqa: PLC0415
    except ImportError:
        raise ExportError("Perfetto's format needs its package: pip install 'trapline[perfetto]'") from None
    writer = _Writer(protos)
    for one in slices(recording):
        _slice(writer, one)
    for event in recording.events:
        if event.phase is Phase.INSTANT:
            _instant(writer, event)
    cpus: set[int] = set()
    for run in running(recording):
        track = _CPUS + run.cpu
        if run.cpu not in cpus:
            cpus.add(run.cpu)
            writer.describe(track, name=f"CPU {run.cpu}")
        writer.event("SLICE_BEGIN", run.start, track, 1, name=run.process)
        writer.event("SLICE_END", run.end, track, 0)
    for index, count in enumerate(recording.counts):
        _count(writer, _COUNTERS + index, count, recording.end)
    return writer.data()


def _slice(writer: _Writer, one: Slice) -> None:
    entry = one.entry
    track = writer.thread(entry.pid, entry.tid, entry.process)
    # At one time: ends before beginnings, an inner end before an outer one, an outer beginning first.
    # A slice that begins and ends at one time keeps its beginning before its end.
    empty = one.end == entry.time
    begun = writer.event("SLICE_BEGIN", entry.time, track, 1000 + one.depth, name=entry.title)
    begun.categories.append(entry.provider)
    writer.annotate(begun, entry.values)
    ended = writer.event("SLICE_END", one.end, track, 5000 - one.depth if empty else -one.depth)
    writer.annotate(ended, one.values)


def _instant(writer: _Writer, event: Event) -> None:
    track = writer.thread(event.pid, event.tid, event.process)
    made = writer.event("INSTANT", event.time, track, 3000, name=event.probe)
    made.categories.append(event.provider)
    writer.annotate(made, event.values)


def _count(writer: _Writer, track: int, count: Count, end: int) -> None:
    keys = ", ".join(str(cell(key)) for key in count.keys)
    described = writer.describe(track, name=f"@{count.name}[{keys}]")
    described.counter.SetInParent()
    value = sum(count.value.values()) if isinstance(count.value, Mapping) else count.value
    writer.event("COUNTER", end, track, counter_value=value)
