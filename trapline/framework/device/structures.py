"""The structures that requests of /dev/dtrace/dtrace carry: FreeBSD's, LP64, little-endian.

Sources: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h (dtrace_providerdesc_t,
dtrace_probedesc_t, dtrace_argdesc_t, dtrace_eprobedesc_t, dtrace_aggdesc_t, dtrace_recdesc_t,
dtrace_bufdesc_t, dtrace_status_t, dtrace_conf_t, dtrace_fmtdesc_t, dtrace_repldesc_t) and
dtrace_ioctl.h (the requests).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

from providers.base import (
    ArgumentDescription,
    Attribute,
    DependencyClass,
    Privilege,
    ProviderAttributes,
    Stability,
)
from trapline.framework.base.device import (
    AggregationDescription,
    EnabledProbe,
    RecordDescription,
    Status,
)
from trapline.framework.base.program import (
    FUNCTION_NAME_MAX,
    MODULE_NAME_MAX,
    PROBE_NAME_MAX,
    PROVIDER_NAME_MAX,
    ActionKind,
    ProbeDescription,
)

_NAMES: Final = f"{PROVIDER_NAME_MAX}s{MODULE_NAME_MAX}s{FUNCTION_NAME_MAX}s{PROBE_NAME_MAX}s"

PROVIDER: Final = struct.Struct(f"<{PROVIDER_NAME_MAX}s15BxIIq")
PROBE: Final = struct.Struct(f"<I{_NAMES}")
ARGUMENT: Final = struct.Struct("<Iii128s128s")
RECORD: Final = struct.Struct("<HxxIIHHQQ")
# The part before its records; so is the next one.
ENABLED: Final = struct.Struct("<IIQIi")
AGGREGATION: Final = struct.Struct("<Qq iIIIi4x")
BUFFER: Final = struct.Struct("<QIIQQQQ")
STATUS: Final = struct.Struct("<10QBB6x")
CONFIGURATION: Final = struct.Struct("<12I")
FORMAT: Final = struct.Struct("<QiH2x")
ENABLE: Final = struct.Struct("<QiI")
REPLICATE: Final = struct.Struct(f"<I{_NAMES}I{_NAMES}")
CPU: Final = struct.Struct("<i")

# Index of no argument (DTRACE_ARGNONE).
NO_ARGUMENT: Final = -1


class Request(Enum):
    """A request: its code, and the size of the structure that it carries or points at."""

    PROVIDER = 0xC0607801, PROVIDER.size
    PROBES = 0xC1847802, PROBE.size
    BUFSNAP = 0x80087804, BUFFER.size
    PROBEMATCH = 0xC1847805, PROBE.size
    ENABLE = 0xC0107806, ENABLE.size
    AGGSNAP = 0x80087807, BUFFER.size
    EPROBE = 0x80387808, ENABLED.size + RECORD.size
    PROBEARG = 0xC10C7809, ARGUMENT.size
    CONF = 0x4030780A, CONFIGURATION.size
    STATUS = 0x4058780B, STATUS.size
    GO = 0x4004780C, CPU.size
    STOP = 0xC004780D, CPU.size
    AGGDESC = 0x8008780F, AGGREGATION.size + RECORD.size
    FORMAT = 0xC0107810, FORMAT.size
    DOFGET = 0x80087811, 0
    REPLICATE = 0x83087812, REPLICATE.size

    @property
    def code(self) -> int:
        """The command."""
        return self.value[0]

    @property
    def size(self) -> int:
        """Bytes of the structure, at least."""
        return self.value[1]

    @property
    def is_indirect(self) -> bool:
        """Whether the request itself has a pointer to the structure."""
        return self.code >> 16 & 0x1FFF == _POINTER != self.size


_POINTER: Final = 8
REQUESTS: Final = {request.code: request for request in Request}


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _name(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def pack_provider(name: str, attributes: ProviderAttributes, privilege: Privilege) -> bytes:
    """Pack the result of PROVIDER."""
    triples = (attributes.provider, attributes.module, attributes.function, attributes.probe, attributes.args)
    levels = [level for one in triples for level in (one.name, one.data, one.klass)]
    return PROVIDER.pack(_name(name), *levels, privilege, 0, 0)


def unpack_provider(data: bytes) -> ProviderAttributes:
    """Read the attributes in the result of PROVIDER."""
    levels = iter(PROVIDER.unpack_from(data)[1:16])
    return ProviderAttributes(
        *(Attribute(Stability(name), Stability(next(levels)), DependencyClass(next(levels))) for name in levels)
    )


def provider_name(data: bytes) -> str:
    """Read the name in the request PROVIDER."""
    return _text(PROVIDER.unpack_from(data)[0])


def pack_probe(description: ProbeDescription, number: int) -> bytes:
    """Pack the description of a probe, or a pattern and the start of a search."""
    one = description
    return PROBE.pack(number, *map(_name, (one.provider, one.module, one.function, one.name)))


def unpack_probe(data: bytes) -> tuple[int, ProbeDescription]:
    """Read a probe's number, or the start of a search, and the description without it."""
    number, *names = PROBE.unpack_from(data)
    provider, module, function, name = map(_text, names)
    return number, ProbeDescription(provider, module, function, name)


def pack_argument(probe: int, index: int, found: ArgumentDescription | None) -> bytes:
    """Pack an argument's description, or the question for it."""
    if found is None:
        return ARGUMENT.pack(probe, index, 0, b"", b"")
    return ARGUMENT.pack(probe, index, found.mapping, _name(found.native), _name(found.translated))


def unpack_argument(data: bytes) -> tuple[int, ArgumentDescription | None]:
    """Read the probe, and the argument's description (None: there is no such argument)."""
    probe, index, mapping, native, translated = ARGUMENT.unpack_from(data)
    found = ArgumentDescription(index, _text(native), _text(translated), mapping)
    return probe, None if index == NO_ARGUMENT else found


def argument_asked(data: bytes) -> tuple[int, int]:
    """Read the probe and the index that PROBEARG asks for."""
    probe, index, *_ = ARGUMENT.unpack_from(data)
    return probe, index


def _pack_records(records: Iterable[RecordDescription]) -> bytes:
    return b"".join(
        RECORD.pack(one.action, one.size, one.offset, one.alignment, one.format, one.argument, one.statement)
        for one in records
    )


def _unpack_records(data: bytes) -> Iterator[RecordDescription]:
    for action, size, offset, alignment, format_, argument, statement in RECORD.iter_unpack(data):
        yield RecordDescription(ActionKind(action), size, offset, alignment, format_, argument, statement)


def records_wanted(data: bytes, head: struct.Struct) -> int:
    """Return the number of records that fit after a head that ends with their number."""
    return max(min(head.unpack_from(data)[-1], (len(data) - head.size) // RECORD.size), 0)


def pack_enabled(one: EnabledProbe, room: int) -> bytes:
    """Pack the description of an EPID, with `room` of its records at most."""
    head = ENABLED.pack(one.epid, one.probe_id, 0, one.size, len(one.records))
    return head + _pack_records(one.records[:room])


def unpack_enabled(data: bytes) -> EnabledProbe:
    """Read the description of an EPID."""
    epid, probe, _statement, size, _count = ENABLED.unpack_from(data)
    return EnabledProbe(epid, probe, size, tuple(_unpack_records(data[ENABLED.size :])))


def pack_aggregation(one: AggregationDescription, room: int) -> bytes:
    """Pack the description of an aggregation, with `room` of its records at most."""
    head = AGGREGATION.pack(0, one.variable, 0, one.id, one.epid, one.size, len(one.records))
    return head + _pack_records(one.records[:room])


def unpack_aggregation(data: bytes) -> AggregationDescription:
    """Read the description of an aggregation."""
    _pointer, variable, _flags, number, epid, size, _count = AGGREGATION.unpack_from(data)
    return AggregationDescription(number, variable, epid, size, tuple(_unpack_records(data[AGGREGATION.size :])))


_COUNTERS: Final = (
    "dyndrops dyndrops_rinsing dyndrops_dirty specdrops specdrops_busy specdrops_unavail errors filled stkstroverflows"
    " dblerrors killed exiting"
).split()


def pack_status(status: Status) -> bytes:
    """Pack the counters."""
    return STATUS.pack(*(getattr(status, name) for name in _COUNTERS))


def unpack_status(data: bytes) -> Status:
    """Read the counters."""
    values: dict[str, Any] = dict(zip(_COUNTERS, STATUS.unpack_from(data), strict=True))
    return Status(**values | {name: bool(values[name]) for name in ("killed", "exiting")})
