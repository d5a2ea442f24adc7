"""DTrace's own probes of Linux in machine code happen when Python's do, with the same arguments."""

import ctypes
from random import Random
from types import SimpleNamespace

import pytest

from benchmarks.code import LOOP
from emu.engine.hits.firing_code import GO_ON, SKIP
from emu.engine.hits.hit_steps import Call, Fire, FireWhen, Register
from emu.guest.function import FunctionGuest
from emu.isa import ISAS
from emu.native import available
from emu.support.words import WORD_MASK
from providers.linux_kernel.events import EVENTS, value_of
from providers.linux_kernel.named import NativeEvent
from providers.linux_kernel.registrations import Hit

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")
PASSED = tuple(f"%passed {number}" for number in range(5))
COMPUTED = [event for event in EVENTS if not event.of_entry]
ROOM, HALF = 0x400, 0x200
_HAPPENS = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


class Kernel:
    """A guest with random memory, and random arguments in the words that stand for registers."""

    def __init__(self, isa, random, *, by_variable):
        self.isa, self._random = isa, random
        function = FunctionGuest(isa, LOOP[isa.name])
        function.prepare(5)
        self.engine = function.engine
        self._held = function
        self.memory = self.engine.read_register(isa.registers.sp) - ROOM & -16
        offsets = {}

        def offset(structure, member):
            return offsets.setdefault((structure, member), 8 * (3 * len(offsets) % 16))

        self.facts = SimpleNamespace(btf=SimpleNamespace(offset=offset))
        task = isa.calling.results[0]
        variable = self.memory + ROOM - 8 if by_variable else 0

        def current():
            return self.engine.load(variable, 8) if variable else self.engine.read_register(task)

        self.tasks = SimpleNamespace(current=current, variable=variable, abi=SimpleNamespace(current=task))
        self._task = task

    def number(self):
        """A number that a place may pass: an address, mapped or not, a number of an error, a small one."""
        return self._random.choice(
            (self.memory, self.memory + HALF, 0, 8, 1, 0x100, -1, -13, -4095, -4096, 127, 128, 0xFFFF_FFF3, 1 << 40)
        )

    def change(self):
        """Change memory and what is passed; return that."""
        word = self.isa.word
        for place in range(self.memory, self.memory + ROOM, word):
            self.engine.store(place, word, self.number() & self.isa.address_mask)
        self.engine.write_register(self._task, self.memory)
        if self.tasks.variable:
            self.engine.store(self.tasks.variable, 8, self.memory + HALF)
        passed = tuple(self.number() & WORD_MASK for _ in PASSED)
        for name, number in zip(PASSED, passed, strict=True):
            ctypes.c_uint64.from_address(self.engine.tracepoints.temporary(name)).value = number
        return passed


@pytest.mark.parametrize("by_variable", [True, False])
@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_an_event_is_the_same_in_machine_code(isa, by_variable):
    kernel = Kernel(isa, Random(5), by_variable=by_variable)  # noqa: S311  (nothing is secret)
    happened = {}
    for event in COMPUTED:
        native = NativeEvent(kernel, event, tuple(map(Register, PASSED)), "")
        call, fire = native.steps(77, None)
        assert isinstance(call, Call)
        assert isinstance(fire, Fire)
        assert not call.asks
        assert fire.runs == 77
        shown = [kernel.engine.tracepoints.temporary(one.name) for one in fire.arguments]
        for _ in range(60):
            passed = kernel.change()
            expected = event.holds is None or value_of(event.holds, kernel, passed) != 0
            answer = _HAPPENS(call.function)(call.argument, 0)
            assert answer == (GO_ON if expected else SKIP), (event, passed)
            happened.setdefault(event.name, set()).add(expected)
            if expected:
                values = [ctypes.c_uint64.from_address(place).value for place in shown]
                assert values == [value_of(one.value, kernel, passed) for one in event.shown], (event, passed)
    conditional = {event.name for event in COMPUTED if event.holds is not None}
    assert {name for name, seen in happened.items() if seen == {True, False}} == conditional


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_an_event_of_another_tracepoint_does_not_happen(isa):
    kernel = Kernel(isa, Random(6), by_variable=True)  # noqa: S311  (nothing is secret)
    mark = isa.registers.sp
    place = kernel.engine.read_register(mark)
    event = next(event for event in COMPUTED if event.name == "lwp-exit")
    for tracepoint, expected in ((place, GO_ON), (place + 8, SKIP)):
        native = NativeEvent(kernel, event, tuple(map(Register, PASSED)), mark)
        call, fire = native.steps(77, Hit(tracepoint, mark, ()))
        assert isinstance(fire, FireWhen)
        assert (fire.register, fire.value) == (mark, tracepoint)
        assert _HAPPENS(call.function)(call.argument, 0) == expected
