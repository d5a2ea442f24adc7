"""Functions before chosen instructions: they are called there, and nowhere else."""

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.errors import EngineError
from emu.engine.handlers import TrapTaker
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.qemu.code_hooks import CodeHooks
from emu.engine.state import HANDLED
from emu.isa import ISAS
from emu.isa.x86.unicorn import HFLAGS

isas = pytest.mark.parametrize("isa", ISAS)
ways = pytest.mark.parametrize(
    "accelerated",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
        ),
        False,
    ],
)
CODE = 0x10000
LOCK = b"\xf0"
# Instructions that do nothing, of two sizes where the ISA has them.
NOTHING = {
    "x86_64": ("90", "6690"),
    "i386": ("90", "6690"),
    "aarch64": ("1f2003d5",),
    "riscv64": ("0100", "13000000"),
}


class Line:
    """A line of instructions that do nothing, then one that waits."""

    def __init__(self, isa, accelerated, count=60):
        space = PageMap()
        space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
        self.engine = Engine(ISAS[isa], 8 * PAGE, pages=space, accelerated=accelerated)
        kinds = [bytes.fromhex(text) for text in NOTHING[isa]]
        self.places, code = [], b""
        for number in range(count):
            self.places.append(CODE + len(code))
            code += kinds[number * 7 // 3 % len(kinds)]
        self.code = code + ISAS[isa].traps.wait
        self.engine.write_code(CODE, self.code)
        self.called = []

    def hook(self, place, name=None):
        self.engine.code.on_code(place, lambda: self.called.append(place if name is None else name))
        self.rewrite()

    def rewrite(self):
        """Make Unicorn translate the line anew."""
        self.engine.write_code(CODE, self.code)

    def run(self):
        """Run the line and return what was called."""
        self.called.clear()
        self.engine.pc = CODE
        assert self.engine.run()
        return list(self.called)


@isas
@ways
@settings(max_examples=10, deadline=None)
@given(numbers=st.lists(st.integers(0, 59), unique=True, max_size=60))
def test_what_is_hooked_is_called_in_order_and_nothing_else_is(isa, accelerated, numbers):
    line = Line(isa, accelerated)
    assert line.run() == []
    for number in numbers:
        line.hook(line.places[number])
    wanted = [line.places[number] for number in sorted(numbers)]
    assert line.run() == wanted
    assert line.run() == wanted  # what is translated already
    assert line.engine.instructions == 3 * 61


@isas
@ways
def test_two_functions_at_one_instruction_are_called_in_the_order_of_adding(isa, accelerated):
    line = Line(isa, accelerated)
    for name in ("first", "second", "third"):
        line.hook(line.places[5], name)
    line.hook(line.places[4])
    assert line.run() == [line.places[4], "first", "second", "third"]


@isas
@ways
def test_what_is_removed_is_not_called_and_may_be_added_again(isa, accelerated):
    line = Line(isa, accelerated)
    hooks = line.engine._code_hooks
    place = line.places[7]
    line.hook(place)
    pointer = hooks._functions[place][0][1]
    for _ in range(3):
        hooks.remove(place, pointer)
        line.rewrite()
        assert line.run() == []
        hooks.add(place, pointer, 0)
        line.rewrite()
        assert line.run() == [place]
    assert len(hooks._functions[place]) == 1


@isas
@ways
def test_stepping_calls_them_too(isa, accelerated):
    line = Line(isa, accelerated)
    wanted = [line.places[number] for number in (3, 4, 9)]
    for place in wanted:
        line.hook(place)
    for _ in range(2):
        line.called.clear()
        line.engine.pc = CODE
        for _ in range(12):
            line.engine.step()
        assert line.called == wanted
    assert line.run() == wanted


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
def test_a_thousand_of_them():
    line = Line("x86_64", accelerated=True, count=3000)
    wanted = line.places[::3]
    for place in wanted:
        line.engine.code.on_code(place, lambda place=place: line.called.append(place))
    line.rewrite()
    assert line.run() == wanted


def test_another_layout_of_hooks_is_refused():
    handle = (ctypes.c_uint64 * 8)()
    with pytest.raises(EngineError, match="keeps its hooks elsewhere"):
        CodeHooks().attach(lambda _begin, _end: ctypes.addressof(handle))


@ways
@pytest.mark.parametrize("level", [0, 3])
def test_a_breakpoint_that_is_a_lock_is_hooked_and_no_exit_at_either_level(accelerated, level):
    space = PageMap()
    space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
    engine = Engine(ISAS["i386"], 8 * PAGE, pages=space, accelerated=accelerated)
    flags = ctypes.c_uint32.from_address(engine.cpu.env + HFLAGS)
    flags.value = flags.value & ~3 | level
    met = []

    class Take(TrapTaker):
        def breakpoint(self, address):
            met.append((address, engine.instructions))
            engine.pc += 3  # the displaced instruction and the next one
            if len(met) == 2:
                engine.stop()
            return HANDLED

    engine.handlers.taker = Take()
    engine.write_code(CODE, bytes.fromhex("90 55 89e5 90 cc"))  # nop; push ebp; mov ebp, esp; nop; int3
    engine.write_code(CODE + 1, LOCK)
    engine.pc = CODE
    assert not engine.run()
    # Each counts as one instruction, and ends what was counted of its block.
    assert met == [(CODE + 1, 2), (CODE + 5, 4)]
