"""A framework over a guest under control of a test."""

from __future__ import annotations

import struct

from emu.displaced.cpu_core import CpuCore
from tests.support.fake_guest import FakeGuest, FakeProvider
from tests.trapline.d.support import compile_text
from trapline import dof
from trapline.dof import encode
from trapline.framework.device.dtrace import DTrace


class Bench:
    """A guest, a framework, a provider `test` with the probes f:entry and g:entry, and a device."""

    def __init__(self, program="", **options):
        self.guest = FakeGuest()
        self.dtrace = DTrace(self.guest, CpuCore(), dof)
        self.provider = FakeProvider(self.dtrace)
        self.f = self.provider.create("mod", "f", "entry")
        self.g = self.provider.create("mod", "g", "entry")
        self.device = self.open(program, **options)

    def open(self, program="", **options):
        device = self.dtrace.open()
        for name, value in {"bufsize": 1 << 14, "aggsize": 1 << 14, "dynvarsize": 1 << 14, **options}.items():
            device.set_option(name, value)
        if program:
            device.enable(encode(compile_text(program, probes=device.probes)))
            device.go()
        return device

    def fire(self, probe=None, *args):
        self.dtrace.probe(probe or self.f, *args)

    def records(self, device=None):
        """The records since the last snapshot: (epid, timestamp, data)."""
        device = device or self.device
        data, found, at = device.buffer_snapshot(0).data, [], 0
        while at < len(data):
            epid, high, low = struct.unpack_from("<III", data.ljust(at + 12, b"\0"), at)
            if epid == 0:
                at += 4
                continue
            size = device.enabled_probe(epid).size
            found.append((epid, high << 32 | low, data[at + 12 : at + size]))
            at += size
        return found

    def numbers(self, device=None):
        """The data of the records, each as one 64-bit number."""
        return [int.from_bytes(data[4:12], "little") for _, _, data in self.records(device)]


def trace(expression, where="f:entry"):
    return f"{where} {{ trace((int64_t)({expression})); }}"
