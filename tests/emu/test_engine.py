"""The engine: exact counts, equal in machine code and in Python; deadlines; code that changes."""

import pytest

from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.errors import EngineError, GuestCrashError
from emu.engine.qemu import layout
from emu.engine.state import HANDLED
from emu.engine.time.clock import VirtualClock
from emu.guest.function import CODE, STACK, FunctionFaultError, FunctionGuest
from emu.isa import ISAS
from emu.probe.arguments import pass_arguments
from emu.support.words import BadAddressError
from tests.emu.code import ADD, ADD_ENTRY, ADD_INSTRUCTIONS, EXCLUSIVE, LOAD, LOOP

LANDING = 1  # the wait instruction a call returns to
MANY = 1 << 30


def counter(guest):
    """The remaining value of the argument that LOOP counts down."""
    arguments = guest.isa.calling.arguments
    return guest.engine.read_register(arguments[0]) if arguments else guest.engine.load(STACK - 256, guest.isa.word)


isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
engines = pytest.mark.parametrize(
    "accelerated",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
        ),
        False,
    ],
    ids=["native", "python"],
)


@isas
@engines
def test_a_call_returns_the_functions_result_and_counts_each_instruction_once(isa, accelerated):
    guest = FunctionGuest(isa, ADD[isa.name], accelerated=accelerated)
    assert guest.call(20, 22) == 42
    assert guest.engine.instructions == ADD_INSTRUCTIONS[isa.name] + LANDING


@isas
@engines
def test_a_loop_counts_two_instructions_a_turn(isa, accelerated):
    guest = FunctionGuest(isa, LOOP[isa.name], accelerated=accelerated)
    guest.call(1000)
    assert guest.engine.instructions == 2 * 1000 + 1 + LANDING


@isas
@engines
def test_a_fault_in_mid_block_counts_only_what_came_before_it(isa, accelerated):
    guest = FunctionGuest(isa, LOAD[isa.name], accelerated=accelerated)
    with pytest.raises(FunctionFaultError):
        guest.call(0x1234_5678)
    assert guest.engine.instructions == 2


@isas
def test_native_and_python_engines_stop_at_the_same_instruction(isa):
    if not native_callbacks.available():
        pytest.skip("llvmlite is not installed")
    places = []
    for accelerated in (True, False):
        guest = FunctionGuest(isa, LOOP[isa.name], accelerated=accelerated)
        with pytest.raises(FunctionFaultError, match="had not returned"):
            guest.call(MANY, limit=777)
        engine = guest.engine
        places.append((engine.instructions, engine.pc, counter(guest)))
    assert places[0] == places[1]
    assert 777 <= places[0][0] < 777 + 2


@isas
@engines
def test_a_soft_deadline_stops_user_code_and_not_kernel_code(isa, accelerated):
    """User mode is told by the address: the lower half."""
    for address, stops in ((CODE, True), (isa.kernel_base, False)):
        guest = FunctionGuest(isa, LOOP[isa.name], address=address, accelerated=accelerated)
        engine = guest.engine
        engine.pc = address
        engine.write_register(isa.registers.sp, STACK - 256)
        pass_arguments(engine, (MANY,))
        engine.run(soft=100, hard=1000)
        assert (engine.instructions < 1000) is stops


@isas
@engines
def test_code_written_over_is_executed_as_written(isa, accelerated):
    guest = FunctionGuest(isa, ADD[isa.name] + LOOP[isa.name], accelerated=accelerated)
    assert guest.call(1, 2) == 3
    before = guest.engine.instructions
    guest.engine.write_code(CODE, LOOP[isa.name])
    guest.call(10)
    assert guest.engine.instructions - before == 2 * 10 + 1 + LANDING


@isas
def test_writing_code_where_nothing_is_mapped_is_an_error(isa):
    guest = FunctionGuest(isa, ADD[isa.name])
    with pytest.raises(BadAddressError):
        guest.engine.write_code(0x4000_0000, b"\0\0\0\0")


# Add 1 to the result, and jump to the next instruction; return.
BLOCKS = {
    "x86_64": ("ffc0eb00", "c3"),
    "i386": ("40eb00", "c3"),
    "aarch64": ("0004009101000014", "c0035fd6"),
    "riscv64": ("130515006f004000", "67800000"),
}


@isas
@engines
@pytest.mark.parametrize("writes", [False, True])
def test_code_is_forgotten_while_it_runs(isa, accelerated, writes):
    block, end = map(bytes.fromhex, BLOCKS[isa.name])
    guest = FunctionGuest(isa, 5 * block + end, accelerated=accelerated)
    engine, seen = guest.engine, []

    def forget():
        seen.append(engine.instructions)
        if writes:
            engine.write_code(CODE + 3 * len(block), end)
        else:
            engine.code.forget(guest.physical(CODE), 1)

    engine.code.on_code(CODE, forget)
    engine.write_register(isa.calling.results[0], 0)
    engine.code.forget(guest.physical(CODE), 1)  # the first block begins where the next would be
    assert guest.call(limit=100) == (3 if writes else 5)
    assert (seen, engine.instructions) == ([0], (8 if writes else 12))


@isas
@engines
def test_a_displaced_instruction_counts_as_the_instruction_itself(isa, accelerated):
    guest = FunctionGuest(isa, ADD[isa.name], accelerated=accelerated)
    site = CODE + ADD_ENTRY[isa.name]
    saved = int.from_bytes(guest.patcher.original(site, 4), "little")
    seen = []

    def handler(address, frame, _extra):
        seen.append((address, frame.arguments()[:2]))
        return 1 if isa.stub.by_code else saved

    guest.traps.add(handler)
    tracepoint = guest.patcher.create(site, isa.traps.breakpoints[-1], "test")
    guest.patcher.install(tracepoint)
    assert guest.call(20, 22) == 42
    assert guest.engine.instructions == ADD_INSTRUCTIONS[isa.name] + LANDING
    assert seen == [(site, (20, 22))]


@pytest.mark.parametrize("isa", EXCLUSIVE)
@pytest.mark.parametrize("returned", [False, True])
def test_a_reservation_is_lost_where_the_cpu_is_said_to_return_from_an_exception(isa, returned):
    guest = FunctionGuest(ISAS[isa], EXCLUSIVE[isa])

    def breakpoint_between(pc):
        if returned:
            guest.engine.cpu.lose_reservation()
        guest.engine.pc = pc + 4
        return HANDLED

    guest.engine.handlers.taker.breakpoint = breakpoint_between
    assert bool(guest.call(guest.allocate(8))) is returned  # 0: the store-exclusive has succeeded


@isas
def test_an_exception_in_a_handler_ends_the_run_and_reaches_the_caller(isa):
    guest = FunctionGuest(isa, ADD[isa.name])
    guest.traps.add(lambda *_: 1 // 0)
    guest.patcher.install(guest.patcher.create(CODE, isa.traps.breakpoints[-1], "test"))
    with pytest.raises(ZeroDivisionError):
        guest.call(1, 2)


@isas
def test_a_breakpoint_that_no_probe_claims_is_reported_with_its_address(isa):
    guest = FunctionGuest(isa, ADD[isa.name])
    guest.patcher.install(guest.patcher.create(CODE, isa.traps.breakpoints[-1], "test"))
    with pytest.raises(FunctionFaultError, match="breakpoint at 0x10000 that no probe claims"):
        guest.call(1, 2)


@isas
def test_time_follows_instructions_and_stands_still_while_paused(isa):
    guest = FunctionGuest(isa, LOOP[isa.name])
    clock = VirtualClock(guest.engine, rate=1_000_000)
    guest.call(100)
    now = clock.now()
    assert now == guest.engine.instructions * 1000
    clock.pause()
    guest.call(100)
    assert clock.now() == now
    clock.resume()
    guest.call(100)
    assert clock.now() == now + (2 * 100 + 1 + LANDING) * 1000
    clock.skip_to(now * 10)
    assert clock.now() == now * 10
    assert clock.instructions_at(now * 10 + 5000) == guest.engine.instructions + 5


@isas
def test_memory_gives_the_address_that_is_not_mapped(isa):
    guest = FunctionGuest(isa, ADD[isa.name])
    address = guest.allocate(b"12345678")
    assert guest.engine.load(address, 8) == int.from_bytes(b"12345678", "little")
    with pytest.raises(BadAddressError) as error:
        guest.engine.read(address, 16)
    assert error.value.address == address + 8


@isas
def test_more_arguments_than_registers_is_an_error(isa):
    guest = FunctionGuest(isa, ADD[isa.name])
    if not isa.calling.arguments:
        assert guest.call(*range(9)) == 1
        return
    with pytest.raises(EngineError, match="only"):
        guest.call(*range(9))


def test_a_layout_that_does_not_fit_is_noticed_before_it_is_used(monkeypatch):
    monkeypatch.setattr("emu.engine.qemu.layout.CPU_UC", layout.CPU_UC - 8)
    with pytest.raises(EngineError, match="keeps its state elsewhere; `trapline doctor` says more"):
        Engine(ISAS["x86_64"], 1 << 20)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("isa_name", ["x86_64", "i386"])
def test_an_exception_without_a_gate_ends_the_run(isa_name, accelerated):
    engine = Engine(ISAS[isa_name], 1 << 20, accelerated=accelerated and native_callbacks.available())
    engine.write_code(0x1000, b"\xcd\x80")  # int 0x80, and no interrupt table
    engine.pc = 0x1000
    with pytest.raises(GuestCrashError, match="the CPU shut down at 0x1002"):
        engine.run(hard=10)
