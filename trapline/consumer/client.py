"""The consumer's side of /dev/dtrace/dtrace: its questions and actions as requests.

Source: FreeBSD libdtrace dt_open.c (dt_ioctl), dt_aggregate.c, dt_consume.c, dt_work.c, which make
these requests.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from providers.base import ArgumentDescription, ProviderAttributes
from trapline.dof import decode
from trapline.framework.base.device import (
    NO_MORE_PROBES,
    AggregationDescription,
    AggregationSnapshot,
    Answer,
    BufferSnapshot,
    DeviceError,
    EnabledProbe,
    ProbeInfo,
    Status,
)
from trapline.framework.base.program import ProbeDescription
from trapline.framework.device import structures
from trapline.framework.device.structures import Request

# The number of records for which a description has space at first; if there are more, it is requested again.
_RECORDS: Final = 16
_FORMAT_SIZE: Final = 256
_CONFIGURATION: Final = structures.CONFIGURATION.size
# Bytes of an aggregation id.
_ID: Final = 4


class File(Protocol):
    """An open /dev/dtrace/dtrace: `trapline.framework.device.ioctl.OpenDevice`."""

    def ioctl(self, command: int, buffer: bytes) -> Answer:
        """Make a request."""
        ...

    def close(self) -> None:
        """Disable everything."""
        ...


class Client:
    """Makes requests of a device.  Implements `trapline.framework.base.device.Device`."""

    def __init__(self, file: File, log: Callable[[str], object] | None = None) -> None:
        """Take an open device; `log` is called for every request (-x verbose_ioctl)."""
        self._file = file
        self._log = log
        self._attributes: dict[str, ProviderAttributes] = {}
        self.configuration = structures.CONFIGURATION.unpack(self._request(Request.CONF, bytes(_CONFIGURATION)))
        """Version of DIF, numbers of integer and tuple registers, data model of the kernel."""
        self._sizes: dict[int, int] = {}
        """Bytes of an entry of an aggregation buffer, by aggregation id."""

    def _request(self, request: Request, buffer: bytes) -> bytes:
        """Make a request.  Raises `DeviceError`."""
        if self._log is not None:
            self._log(f"dtrace_ioctl: DTRACEIOC_{request.name} ({request.code:#010x})\n")
        number, data, complaint = self._file.ioctl(request.code, buffer)
        if number:
            raise DeviceError(errno.errorcode.get(number, str(number)), complaint)
        return data

    # -- probes

    def probes(self, pattern: ProbeDescription | None = None) -> Sequence[ProbeInfo]:
        """Return the probes that match, by id; None: all."""
        return list(self._iterate(pattern))

    def has(self, pattern: ProbeDescription) -> bool:
        """Return whether a probe matches."""
        return next(self._iterate(pattern), None) is not None

    def first(self, pattern: ProbeDescription) -> ProbeInfo | None:
        """Return the first probe that matches, None if there is none; ask for a second one.

        dt_probe_info() asks for it, because the arguments of two probes may differ.
        """
        return next(iter([*islice(self._iterate(pattern), 2)]), None)

    def has_provider(self, name: str) -> bool:
        """Return whether there is a provider."""
        try:
            self._provider(name)
        except DeviceError as error:
            if error.errno_name == "ESRCH":
                return False
            raise
        return True

    def why_none(self, pattern: ProbeDescription) -> str:
        """Return why no probe matches, if a provider knows it; else ""."""
        try:
            self._request(Request.PROBEMATCH, structures.pack_probe(pattern, 0))
        except DeviceError as error:
            return "" if str(error) == NO_MORE_PROBES else str(error)
        return ""

    def _iterate(self, pattern: ProbeDescription | None) -> Iterator[ProbeInfo]:
        request = Request.PROBES if pattern is None else Request.PROBEMATCH
        number = 0
        if pattern is not None and pattern.id:
            # The number in a pattern is the start of the search; a description by number is one probe.
            request, number = Request.PROBES, pattern.id
        while True:
            try:
                answered = self._request(request, structures.pack_probe(pattern or ProbeDescription(), number))
            except DeviceError as error:
                if error.errno_name == "ESRCH":
                    return
                raise
            number, description = structures.unpack_probe(answered)
            if pattern is not None and pattern.id and number != pattern.id:
                return
            names = description.provider, description.module, description.function, description.name
            yield ProbeInfo(number, ProbeDescription(*names, number), self._provider(description.provider))
            if pattern is not None and pattern.id:
                return
            number += 1

    def _provider(self, name: str) -> ProviderAttributes:
        found = self._attributes.get(name)
        if found is None:
            asked = name.encode("utf-8", "surrogateescape").ljust(structures.PROVIDER.size, b"\0")
            found = structures.unpack_provider(self._request(Request.PROVIDER, asked))
            self._attributes[name] = found
        return found

    def probe_argument(self, probe_id: int, index: int) -> ArgumentDescription | None:
        """Return the type of a probe's argument."""
        asked = structures.pack_argument(probe_id, index, None)
        return structures.unpack_argument(self._request(Request.PROBEARG, asked))[1]

    # -- enabling

    def in_force(self) -> Mapping[str, int]:
        """Return the run-time options as they are in force."""
        return dict(decode(self._request(Request.DOFGET, b"")).options)

    def enable(self, dof: bytes) -> int:
        """Enable a program; return how many probes it matched."""
        answered = self._request(Request.ENABLE, bytes(structures.ENABLE.size) + dof)
        matched: int = structures.ENABLE.unpack(answered)[1]
        return matched

    def enabled_probe(self, epid: int) -> EnabledProbe:
        """Describe an EPID."""

        def asked(records: int) -> bytes:
            head = structures.ENABLED.pack(epid, 0, 0, 0, records)
            return self._request(Request.EPROBE, head + bytes(records * structures.RECORD.size))

        answered = asked(_RECORDS)
        count = structures.ENABLED.unpack_from(answered)[-1]
        return structures.unpack_enabled(answered if count <= _RECORDS else asked(count))

    def aggregation(self, aggregation_id: int) -> AggregationDescription:
        """Describe an aggregation id."""

        def asked(records: int) -> bytes:
            head = structures.AGGREGATION.pack(0, 0, 0, aggregation_id, 0, 0, records)
            return self._request(Request.AGGDESC, head + bytes(records * structures.RECORD.size))

        answered = asked(_RECORDS)
        count = structures.AGGREGATION.unpack_from(answered)[-1]
        return structures.unpack_aggregation(answered if count <= _RECORDS else asked(count))

    def format(self, number: int) -> str:
        """Return a format string."""
        size = _FORMAT_SIZE
        while True:
            answered = self._request(Request.FORMAT, structures.FORMAT.pack(0, size, number))
            _string, length, _number = structures.FORMAT.unpack_from(answered)
            if length <= size:
                return answered[structures.FORMAT.size :][:-1].decode("utf-8", "surrogateescape")
            size = length

    # -- tracing

    def go(self) -> int:
        """Start tracing; return the CPU that BEGIN ran on."""
        return self._cpu(Request.GO)

    def stop(self) -> int:
        """Stop tracing; return the CPU that END ran on."""
        return self._cpu(Request.STOP)

    def _cpu(self, request: Request) -> int:
        cpu: int = structures.CPU.unpack(self._request(request, bytes(structures.CPU.size)))[0]
        return cpu

    def buffer_snapshot(self, cpu: int) -> BufferSnapshot:
        """Switch and return a CPU's principal buffer."""
        answered = self._request(Request.BUFSNAP, structures.BUFFER.pack(0, cpu, 0, 0, 0, 0, 0))
        size, cpu, errors, drops, _data, _oldest, timestamp = structures.BUFFER.unpack_from(answered)
        start = structures.BUFFER.size
        return BufferSnapshot(cpu, answered[start : start + size], drops, errors, timestamp)

    def aggregation_snapshot(self, cpu: int) -> AggregationSnapshot:
        """Switch and return a CPU's aggregation buffer."""
        answered = self._request(Request.AGGSNAP, structures.BUFFER.pack(0, cpu, 0, 0, 0, 0, 0))
        size, cpu, _errors, drops, *_ = structures.BUFFER.unpack_from(answered)
        start = structures.BUFFER.size
        return AggregationSnapshot(cpu, tuple(self._entries(answered[start : start + size])), drops)

    def _entries(self, data: bytes) -> Iterator[bytes]:
        """Cut what an aggregation buffer holds into its entries; an id of 0 is padding."""
        offset = 0
        while offset < len(data):
            number = int.from_bytes(data[offset : offset + _ID], "little")
            if not number:
                offset += _ID
                continue
            if number not in self._sizes:
                self._sizes[number] = self.aggregation(number).size
            end = offset + self._sizes[number]
            yield data[offset:end]
            offset = end

    def status(self) -> Status:
        """Return the counters."""
        return structures.unpack_status(self._request(Request.STATUS, bytes(structures.STATUS.size)))

    def close(self) -> None:
        """Disable everything; tracepoints are restored."""
        self._file.close()
