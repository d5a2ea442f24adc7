"""A session over a fake device, for tests."""

from __future__ import annotations

import io

from tests.trapline.consumer.support import FakeDevice, guest_with_symbols
from trapline.consumer.output import Output
from trapline.consumer.records.consume import Handlers
from trapline.consumer.session import Session
from trapline.options import NANOSECONDS

FAULT = "error on enabled probe ID 1 (ID 10: fbt:kernel:sys_read:entry): "


class Trace:
    """A session over a fake device, and what it said."""

    def __init__(self, *options, cpus=1, guest=None):
        self.device = FakeDevice(cpus)
        self.device.probe(1, "dtrace", "", "", "BEGIN")
        self.device.probe(2, "dtrace", "", "", "END")
        self.device.probe(3, "dtrace", "", "", "ERROR")
        self.device.probe(10, "fbt", "kernel", "sys_read", "entry")
        self.device.probe(11, "fbt", "kernel", "sys_read", "return")
        self.device.probe(12, "syscall", "", "read", "entry")
        self.device.probe(13, "syscall", "", "read", "return")
        self.guest = guest or guest_with_symbols()
        self.text = io.StringIO()
        self.faults, self.drops, self.commands = [], [], []
        self.handlers = Handlers(self.faults.append, self.drops.append, system=self._run)
        self.session = Session(self.device, self.guest, Output(self.text), self.handlers)
        for name, value in options:
            self.session.options.set(name, value)
        self.session.go()

    def _run(self, command):
        self.commands.append((command, self.text.getvalue()))

    def work(self):
        self.session.work()
        self.guest.time += NANOSECONDS
        text = self.text.getvalue()
        self.text.seek(0)
        self.text.truncate(0)
        return text
