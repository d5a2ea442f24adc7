"""Machine code of a DIF object does what the machine does: result, faults, where, and stores."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("llvmlite")

from emu.native.builder import Module
from emu.native.linking import Linked
from tests.trapline.framework.native.objects import objects
from tests.trapline.framework.support import Bench
from trapline.framework import translate as functions
from trapline.framework.machine import Loaded
from trapline.framework.native.dif import translate
from trapline.framework.native.firing import UNREAD
from trapline.framework.native.upcalls import Upcalls

ARGUMENTS = (1, 2, 0xFFFF_FFFF_8000_0000, 7, (1 << 64) - 1)


class Trial:
    def __init__(self):
        self.bench = Bench()
        device = self.bench.device
        self.device = device
        self.probe = self.bench.dtrace.table.get(self.bench.f)
        self.upcalls = Upcalls(device.machine, device.context, lambda _epid: self.probe)

    def native(self, loaded):
        module = Module()
        translate(module, "object", loaded.difo, "strings")
        symbols = {**self.upcalls.symbols, "strings": loaded.strings}
        linked = Linked(module.compiled("test"), symbols)
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(linked.address("object"))
        arguments = (ctypes.c_uint64 * 5)(*ARGUMENTS)
        firing = self.upcalls.firing
        firing.flags = firing.illval = firing.depth = 0
        firing.fresh = 1
        firing.epid, firing.cpu = 1, 0
        firing.arguments = ctypes.addressof(arguments)
        firing.timestamp = firing.walltimestamp = UNREAD
        firing.fault_offset = UNREAD
        result = function(ctypes.addressof(arguments))
        self.upcalls.check()
        return result, firing.flags, firing.fault_offset if firing.flags else -1

    def context(self):
        context = self.device.context
        self.device.world.core.flags = 0
        context.fault_offset = context.timestamp = context.walltimestamp = -1
        context.args, context.epid, context.cpu, context.probe, context.thread = ARGUMENTS, 1, 0, self.probe, None
        context.scratch_base = context.scratch_ptr = context.scratch_end = 0
        return context

    def other(self, run):
        context = self.context()
        result = run(context)
        flags = self.device.world.core.flags
        return result, flags, context.fault_offset


TRIAL = Trial()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects())
def test_machine_code_does_what_the_machine_does(difo):
    loaded = Loaded(difo, 0x1000)
    machine = TRIAL.device.machine
    expected = TRIAL.other(lambda context: machine.run(loaded, context))
    assert TRIAL.other(functions.translate(machine, loaded)) == expected
    assert TRIAL.native(loaded) == expected
