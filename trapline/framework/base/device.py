"""/dev/dtrace/dtrace for the consumer: the requests, and their arguments and results.

`structures.py` has the bytes of it, `ioctl.py` answers the requests.  Source: FreeBSD dtrace.h
(dtrace_recdesc_t, dtrace_eprobedesc_t, dtrace_aggdesc_t, dtrace_bufdesc_t, dtrace_status_t).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from emu.support.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from providers.base import ArgumentDescription, ProviderAttributes
    from trapline.framework.base.program import ActionKind, ProbeDescription


# The complaint at the end of a search for probes, and in place of it where a provider knows no reason.
NO_MORE_PROBES: Final = "there are no more probes"


class DeviceError(Exception):
    """A request that the framework refuses; `errno_name` is the error of the ioctl."""

    def __init__(self, errno_name: str, message: str) -> None:
        super().__init__(message)
        self.errno_name = errno_name


class Answer(NamedTuple):
    """The result of a request."""

    errno: int
    """0, or the number of an error; the data are empty then."""
    data: bytes = b""
    complaint: str = ""
    """The message about the error on the console of a kernel with kern.dtrace.err_verbose."""


@immutable
class RecordDescription:
    """One datum of a record (dtrace_recdesc_t).

    Offsets and sizes in bytes from the record's start.
    """

    action: ActionKind
    size: int
    offset: int
    alignment: int
    format: int
    """Number of a format string for `Device.format`, 0: none."""
    argument: int
    statement: int


@immutable
class EnabledProbe:
    """The description of an EPID (dtrace_eprobedesc_t)."""

    epid: int
    probe_id: int
    size: int
    records: tuple[RecordDescription, ...]


@immutable
class AggregationDescription:
    """The description of an aggregation id in an aggregation buffer (dtrace_aggdesc_t).

    `records` are the tuple elements (the first: the variable id) and, last, the aggregating action.
    Offsets are from the aggregation id slot (u32) that starts each entry.
    """

    id: int
    variable: int
    epid: int
    size: int
    records: tuple[RecordDescription, ...]


@immutable
class ProbeInfo:
    """A probe as the PROBES and PROBEMATCH requests describe it."""

    id: int
    description: ProbeDescription
    attributes: ProviderAttributes


@immutable
class BufferSnapshot:
    """One CPU's principal buffer (dtrace_bufdesc_t).

    `data` is a sequence of records: u32 EPID (0: four bytes of padding), u32 timestamp high, u32
    timestamp low, then the data of `EnabledProbe.records`; in the order written.
    """

    cpu: int
    data: bytes
    drops: int
    errors: int
    timestamp: int


@immutable
class AggregationSnapshot:
    """One CPU's aggregation buffer, as its entries: each starts with the u32 aggregation id slot.

    Snapshots are cumulative per switch: each holds what was aggregated since the last one; the
    consumer merges.
    """

    cpu: int
    entries: tuple[bytes, ...]
    drops: int


@immutable
class Status:
    """Counters of a consumer's state (dtrace_status_t)."""

    dyndrops: int = 0
    dyndrops_rinsing: int = 0
    dyndrops_dirty: int = 0
    specdrops: int = 0
    specdrops_busy: int = 0
    specdrops_unavail: int = 0
    errors: int = 0
    filled: int = 0
    stkstroverflows: int = 0
    dblerrors: int = 0
    killed: bool = False
    exiting: bool = False


class Device(Protocol):
    """One consumer's state, for the consumer (`trapline.consumer.client.Client`)."""

    def probes(self, pattern: ProbeDescription | None = None) -> Sequence[ProbeInfo]:
        """Return the probes that match, by id; None: all (PROBES, PROBEMATCH)."""
        ...

    def first(self, pattern: ProbeDescription) -> ProbeInfo | None:
        """Return the first probe that matches, None if there is none (PROBEMATCH)."""
        ...

    def has(self, pattern: ProbeDescription) -> bool:
        """Return whether a probe matches (PROBEMATCH)."""
        ...

    def has_provider(self, name: str) -> bool:
        """Return whether there is a provider (PROVIDER)."""
        ...

    def why_none(self, pattern: ProbeDescription) -> str:
        """Return why no probe matches, if a provider knows it; else "" (PROBEMATCH)."""
        ...

    def probe_argument(self, probe_id: int, index: int) -> ArgumentDescription | None:
        """Return the type of a probe's argument (PROBEARG)."""
        ...

    def in_force(self) -> Mapping[str, int]:
        """Return the run-time options as they are in force.

        Sizes may have been lowered by `go` (DOFGET).
        """
        ...

    def enable(self, dof: bytes) -> int:
        """Enable a program given as DOF (ENABLE); return how many probes it matched.

        Options in the DOF are set first.  Raises `DeviceError`: EINVAL when the DOF, a DIF object
        or an action list is refused, E2BIG for too much of it, EBUSY once tracing has begun;
        nothing is enabled then.
        """
        ...

    def enabled_probe(self, epid: int) -> EnabledProbe:
        """Describe an EPID (EPROBE).  Raises `DeviceError` EINVAL for an unknown one."""
        ...

    def aggregation(self, aggregation_id: int) -> AggregationDescription:
        """Describe an aggregation id (AGGDESC)."""
        ...

    def format(self, number: int) -> str:
        """Return a format string (FORMAT)."""
        ...

    def go(self) -> int:
        """Start tracing; BEGIN fires (GO).  Returns the CPU it ran on."""
        ...

    def stop(self) -> int:
        """Stop tracing; END fires (STOP).  Returns the CPU it ran on."""
        ...

    def buffer_snapshot(self, cpu: int) -> BufferSnapshot:
        """Switch and return a CPU's principal buffer (BUFSNAP)."""
        ...

    def aggregation_snapshot(self, cpu: int) -> AggregationSnapshot:
        """Switch and return a CPU's aggregation buffer (AGGSNAP)."""
        ...

    def status(self) -> Status:
        """Return the counters (STATUS)."""
        ...

    def close(self) -> None:
        """Disable everything this consumer enabled; its tracepoints are restored."""
        ...
