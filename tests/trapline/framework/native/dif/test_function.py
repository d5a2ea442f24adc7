"""Machine code of a DIF object does what the machine does: result, faults, where, and stores."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("llvmlite")

from emu.native.builder import Module
from emu.native.link import Linked
from tests.trapline.framework.native.objects import calls, grammars, objects
from tests.trapline.framework.support import Bench
from trapline.framework.base.world import signed
from trapline.framework.native.consumer import NativeConsumer
from trapline.framework.native.dif.function import translate
from trapline.framework.native.firing_words import UNREAD

ARGUMENTS = (1, 2, 0xFFFF_FFFF_8000_0000, 7, (1 << 64) - 1)
SCRATCH = 512


class Trial:
    """One consumer, whose first enabling lends its words to the objects under trial."""

    def __init__(self):
        self.bench = Bench("f:entry { trace(1); }")
        self.device = self.bench.device.runtime
        self.device.operations.string_size = 32
        self.ecb = self.device.ecb(1)
        self.consumer = NativeConsumer(self.device)
        self.words = (ctypes.c_uint64 * 8)(1)

    def native(self, loaded):
        module = Module()
        translate(module, "object", loaded.difo, "strings", self.consumer.surroundings)
        linked = Linked(module.compiled("test"), {**self.consumer.symbols[0], "strings": loaded.strings})
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)(linked.address("object"))
        arguments = (ctypes.c_uint64 * 5)(*ARGUMENTS)
        core, firing = self.device.world.core, self.consumer.upcalls.firing
        core.flags = firing.depth = firing.cpu = 0
        firing.fresh = firing.epid = 1
        firing.strtok = firing.strtok_limit = 0
        firing.arguments = ctypes.addressof(arguments)
        firing.timestamp = firing.walltimestamp = firing.fault_offset = UNREAD
        firing.scratch_base = firing.scratch_pointer = self.scratch()
        firing.scratch_end = self.scratch() + SCRATCH
        result = function(ctypes.addressof(self.words), ctypes.addressof(arguments))
        self.consumer.upcalls.end(None)
        return result, core.flags, signed(firing.fault_offset), firing.scratch_pointer, self.stores()

    def python(self, run):
        context = self.device.context
        self.device.world.core.flags = 0
        context.fault_offset = context.timestamp = context.walltimestamp = -1
        context.args, context.epid, context.cpu, context.probe, context.thread = ARGUMENTS, 1, 0, self.ecb.probe, None
        context.scratch_base = context.scratch_ptr = self.scratch()
        context.scratch_end = self.scratch() + SCRATCH
        context.strtok = context.strtok_limit = 0
        result = run(context)
        return result, self.device.world.core.flags, context.fault_offset, context.scratch_ptr, self.stores()

    def scratch(self):
        return self.device.buffers[0].scratch.base + 64

    def stores(self):
        """What was stored in scratch space, which is empty then."""
        data = self.device.buffers[0].scratch.data
        stored = bytes(data[64 : 64 + SCRATCH])
        data[64 : 64 + SCRATCH] = bytes(SCRATCH)
        return stored


TRIAL = Trial()


def check(difo):
    machine = TRIAL.device.machine
    loaded = machine.load(difo)
    expected = TRIAL.python(lambda context: machine.run(loaded, context))
    assert TRIAL.native(loaded) == expected


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects())
def test_machine_code_does_what_the_machine_does(difo):
    check(difo)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(grammars())
def test_subroutines_that_read_a_grammar_do_what_those_of_python_do(difo):
    check(difo)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls())
def test_subroutines_in_machine_code_do_what_those_of_python_do(difo):
    check(difo)
