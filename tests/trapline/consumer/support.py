"""Hand-made records, aggregations and devices, as the framework would hand them over."""

from __future__ import annotations

import struct
import textwrap
from itertools import count

from providers.base import FREEBSD_KERNEL_ATTRIBUTES
from tests.support.fake_guest import KERNEL, FakeGuest
from trapline.consumer.aggregations.aggregate import Aggregate
from trapline.consumer.records.report import Report
from trapline.consumer.text.symbols import Symbols
from trapline.dof import decode
from trapline.framework.base.device import (
    AggregationDescription,
    AggregationSnapshot,
    BufferSnapshot,
    DeviceError,
    EnabledProbe,
    ProbeInfo,
    RecordDescription,
    Status,
)
from trapline.framework.base.program import ActionKind, ProbeDescription
from trapline.options import Options

HEADER = 12


def exact(text):
    """Read expected output written as `cat -e` shows it: a $ ends each line, so that trailing blanks are seen."""
    lines = textwrap.dedent(text).removeprefix("\n").splitlines()
    assert all(line.endswith("$") for line in lines), lines
    return "".join(line[:-1] + "\n" for line in lines)


def guest_with_symbols(**options):
    """A guest whose kernel has two functions, and whose program has one."""
    return FakeGuest(
        symbols={KERNEL + 0x1000: ("kernel", "sys_read"), KERNEL + 0x2000: ("kernel", "read_random")},
        user_symbols={0x401000: ("/bin/sh", "main")},
        **options,
    )


def layout(fields, start=HEADER):
    """Lay out records as the framework does; a field is (action, bytes) or (action, bytes, attributes)."""
    records, data = [], bytearray(start)
    for action, value, *rest in fields:
        attributes = {"format": 0, "argument": 0, "statement": len(records) + 1, **(rest[0] if rest else {})}
        size = len(value)
        alignment = next((power for power in (8, 4, 2, 1) if size % power == 0), 1) if size else 1
        data.extend(bytes(-len(data) % alignment))
        records.append(RecordDescription(action, size, len(data), alignment, **attributes))
        data.extend(value)
    data.extend(bytes(-len(data) % 4))
    return tuple(records), bytes(data)


def u8(value):
    return struct.pack("<B", value & 0xFF)


def u16(value):
    return struct.pack("<H", value & 0xFFFF)


def u32(value):
    return struct.pack("<I", value & 0xFFFF_FFFF)


def u64(value):
    return struct.pack("<Q", value & (1 << 64) - 1)


def words(*values):
    return b"".join(map(u64, values))


def string(text, size=256):
    return text.encode().ljust(size, b"\0")


def stack(*pcs, frames=20):
    return words(*pcs, *[0] * (frames - len(pcs)))


class Aggregations:
    """Aggregations filled by a test: `add(variable, action, value words, keys)`."""

    def __init__(self, guest=None, options=(), *, per_cpu=False):
        self.guest = guest or guest_with_symbols()
        self.options = Options()
        for name, value in options:
            self.options.set(name, value)
        self.descriptions = {}
        self.symbols = Symbols(self.guest)
        self.aggregate = Aggregate(self.describe, self.symbols, per_cpu=per_cpu)
        self.report = Report(self.aggregate, self.symbols, self.options)

    def describe(self, number):
        if number not in self.descriptions:
            raise DeviceError("EINVAL", f"no aggregation {number}")
        return self.descriptions[number]

    def declare(self, variable, action, size, *keys, argument=0, number=None):
        fields = [(ActionKind.DIFEXPR, u32(variable)), *keys, (action, bytes(size), {"argument": argument})]
        records, data = layout(fields, start=4)
        number = number or next(
            n
            for n in count(1)
            if n not in self.descriptions
            or (self.descriptions[n].variable, self.descriptions[n].records) == (variable, records)
        )
        self.descriptions[number] = AggregationDescription(number, variable, 1, len(data), records)
        return number

    def add(self, variable, action, value, *keys, cpu=0, argument=0):
        """Merge one entry; keys are bytes (DIFEXPR) or (action, bytes[, attributes])."""
        fields = [key if isinstance(key, tuple) else (ActionKind.DIFEXPR, key) for key in keys]
        number = self.declare(variable, action, 8 * len(value), *fields, argument=argument)
        _, data = layout([(ActionKind.DIFEXPR, u32(variable)), *fields, (action, words(*value))], start=4)
        self.aggregate.add(AggregationSnapshot(cpu, (u32(number) + data[4:],), 0))


def quantized(**buckets):
    """The words of a quantize(): q(_0=3, _4=1, m8=2) counts by bucket value; m is minus."""
    from trapline.consumer.aggregations.distribution import quantize_value

    values = {int(name.replace("m", "-").replace("_", "")): number for name, number in buckets.items()}
    return [values.get(quantize_value(index), 0) for index in range(127)]


class FakeDevice:
    """A device whose buffers a test fills: `enable` statements, `fire` them, `snapshot`s take them away."""

    def __init__(self, cpus=1):
        self.infos = {}
        self.enabled = {}
        self.formats = {}
        self.buffers = [bytearray() for _ in range(cpus)]
        self.drops = [0] * cpus
        self.options = {}
        self.state = Status()
        self.programs = []
        self.closed = False
        self.calls = []

    def probe(self, number, provider, module, function, name):
        description = ProbeDescription(provider, module, function, name)
        self.infos[number] = ProbeInfo(number, description, FREEBSD_KERNEL_ATTRIBUTES)

    def format_number(self, text):
        number = len(self.formats) + 1
        self.formats[number] = text
        return number

    def enabling(self, epid, probe, *fields):
        """Define an EPID; fields as for `layout`, with the text of a format instead of its number."""
        numbered = [
            (action, value, {**attributes, "format": self.format_number(attributes["format"])})
            if (attributes := (rest[0] if rest else {})).get("format")
            else (action, value, attributes)
            for action, value, *rest in fields
        ]
        records, data = layout(numbered)
        self.enabled[epid] = EnabledProbe(epid, probe, len(data), records)
        return data

    def fire(self, epid, data, time=0, cpu=0):
        header = struct.pack("<III", epid, time >> 32, time & 0xFFFF_FFFF)
        self.buffers[cpu] += header + data[HEADER:]

    def probes(self, pattern=None):
        if pattern is not None and pattern.id:
            return [self.infos[pattern.id]]
        return [self.infos[number] for number in sorted(self.infos)]

    def why_none(self, pattern):
        return ""

    def has(self, pattern):
        return True

    def first(self, pattern):
        return next(iter(self.probes(pattern)), None)

    def probe_argument(self, probe_id, index):
        return None

    def in_force(self):
        return self.options

    def enable(self, dof):
        program = decode(dof)
        if program.ecbs or not program.options:
            self.programs.append(program)
        self.options.update(program.options)
        return len(program.ecbs)

    def enabled_probe(self, epid):
        return self.enabled[epid]

    def aggregation(self, number):
        raise DeviceError("EINVAL", f"no aggregation {number}")

    def format(self, number):
        return self.formats[number]

    def go(self):
        self.calls.append("go")
        return 0

    def stop(self):
        self.calls.append("stop")
        return 0

    def buffer_snapshot(self, cpu):
        if cpu >= len(self.buffers):
            raise DeviceError("ENOENT", f"no CPU {cpu}")
        data, drops = bytes(self.buffers[cpu]), self.drops[cpu]
        self.buffers[cpu].clear()
        self.drops[cpu] = 0
        return BufferSnapshot(cpu, data, drops, 0, 0)

    def aggregation_snapshot(self, cpu):
        if cpu >= len(self.buffers):
            raise DeviceError("ENOENT", f"no CPU {cpu}")
        return AggregationSnapshot(cpu, (), 0)

    def status(self):
        return self.state

    def close(self):
        self.closed = True
