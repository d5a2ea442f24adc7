"""A trace from go to close: how it ends, and its faults, drops and options, in virtual time."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from emu.guest.base import RunState
from tests.trapline.consumer.support import FakeDevice, guest_with_symbols, string, u32, u64
from tests.trapline.consumer.trace import FAULT, Trace
from trapline.consumer.errors import ConsumerError
from trapline.consumer.output import Output
from trapline.consumer.records.consume import Handlers
from trapline.consumer.session import Session, Work
from trapline.framework.base.device import DeviceError
from trapline.framework.base.program import ActionKind, Program
from trapline.options import NANOSECONDS

DIFEXPR, PRINTF = ActionKind.DIFEXPR, ActionKind.PRINTF


def test_exit_leaves_its_status_and_prints_nothing():
    trace = Trace()
    trace.device.fire(1, trace.device.enabling(1, 1, (ActionKind.EXIT, u32(3))))
    assert trace.work().splitlines()[1] == "  0      1                           :BEGIN "
    assert trace.session.status == 3


def test_an_exiting_framework_is_stopped_and_consumed_to_the_end():
    trace = Trace()
    trace.device.state = replace(trace.device.state, exiting=True)
    trace.device.fire(2, trace.device.enabling(2, 2))
    assert trace.session.work() is Work.DONE
    assert trace.device.calls == ["go", "stop"]
    assert ":END" in trace.text.getvalue()


def test_a_ring_buffer_is_consumed_once_tracing_has_stopped():
    trace = Trace(("bufpolicy", "ring"))
    trace.device.fire(1, trace.device.enabling(1, 10))
    assert trace.work() == ""
    trace.session.stop()
    assert "sys_read:entry" in trace.work()


def test_a_full_fill_buffer_ends_the_trace():
    trace = Trace(("bufpolicy", "fill"))
    trace.device.fire(1, trace.device.enabling(1, 10))
    trace.device.state = replace(trace.device.state, filled=1)
    assert trace.session.work() is Work.DONE
    assert "sys_read:entry" in trace.text.getvalue()


def test_an_error_record_is_a_fault_and_no_line():
    trace = Trace()
    program = trace.device.programs[-1]
    fields = [(DIFEXPR, u64(value), {"statement": program.ecbs[0].actions[0].statement}) for value in (1, 2, 16, 1, 8)]
    trace.device.enabling(1, 10)
    trace.device.fire(2, trace.device.enabling(2, 3, *fields))
    assert trace.work() == ""
    assert [fault.message for fault in trace.faults] == [f"{FAULT}invalid address (0x8) in action #2 at DIF offset 16"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1, 0, 4, 4, 0), "divide-by-zero in predicate at DIF offset 4"),
        ((1, 1, -1, 5, 9), "out of scratch space in action #1"),
        ((1, 3, -1, 99, 9), "unknown fault in action #3"),
        ((1, 1, 8, 9, -1), "bad stack (0xffffffffffffffff) in action #1 at DIF offset 8"),
    ],
)
def test_a_fault_says_what_and_where(values, text):
    trace = Trace()
    statement = trace.device.programs[-1].ecbs[0].actions[0].statement
    trace.device.enabling(1, 10)
    fields = [(DIFEXPR, u64(value), {"statement": statement}) for value in values]
    trace.device.fire(2, trace.device.enabling(2, 3, *fields))
    trace.work()
    assert trace.faults[0].message.endswith(f"): {text}")


def test_drops_are_reported_by_cpu_and_by_counter():
    trace = Trace(cpus=2)
    trace.device.drops[1] = 3
    trace.device.state = replace(
        trace.device.state, dyndrops=1, dyndrops_rinsing=2, specdrops_busy=2, specdrops_unavail=1, dblerrors=4
    )
    trace.work()
    assert sorted(drop.message() for drop in trace.drops) == [
        "1 dynamic variable drop",
        "1 failed speculation (no speculative buffer available)",
        "2 dynamic variable drops with non-empty rinsing list",
        "2 failed speculations (available buffer(s) still busy)",
        "3 drops on CPU 1",
        "4 errors in ERROR probe enabling",
    ]
    assert trace.drops[-1].message(tags=True) == "[DTRACEDROP_PRINCIPAL] 3 drops on CPU 1"


def test_drops_are_reported_once():
    trace = Trace()
    trace.device.state = replace(trace.device.state, dyndrops=1)
    trace.work()
    trace.device.state = replace(trace.device.state, dyndrops=3)
    trace.work()
    assert [drop.count for drop in trace.drops] == [1, 2]


def test_a_killed_consumer_aborts():
    trace = Trace()
    trace.device.state = replace(trace.device.state, killed=True)
    with pytest.raises(ConsumerError, match=r"^Abort due to systemic unresponsiveness$"):
        trace.session.work()


def test_sleep_lets_the_guest_run_to_the_next_event():
    trace = Trace(("switchrate", "100ms"))
    trace.guest.script = [(10 * NANOSECONDS, lambda: None)]
    assert trace.session.sleep() is RunState.RUNNING
    start = trace.guest.now()
    trace.session.work()
    assert trace.session.sleep() is RunState.RUNNING
    assert trace.guest.now() == start + 100_000_000


def test_a_ring_buffer_sleeps_until_the_status_is_due():
    trace = Trace(("switchrate", "100ms"), ("bufpolicy", "ring"))
    trace.guest.script = [(10 * NANOSECONDS, lambda: None)]
    start = trace.guest.now()
    trace.session.work()
    trace.session.sleep()
    assert trace.guest.now() == start + NANOSECONDS


def test_a_rate_of_zero_does_not_stop_time():
    trace = Trace(("switchrate", "0"))
    trace.guest.script = [(10 * NANOSECONDS, lambda: None)]
    trace.session.work()
    before = trace.guest.now()
    trace.session.sleep()
    assert trace.guest.now() > before


def test_a_timeout_ends_a_guest_that_never_ends():
    trace = Trace(("timeout", "2500ms"))
    start = trace.guest.now()
    trace.guest.script = [(1000 * NANOSECONDS, lambda: None)]
    trace.session.run()
    assert trace.session.stopped
    assert trace.guest.now() == start + 2_500_000_000


def test_a_guest_that_ends_ends_the_trace():
    trace = Trace()
    data = trace.device.enabling(1, 10)
    trace.guest.script = [(NANOSECONDS // 2, lambda: trace.device.fire(1, data))]
    trace.session.run()
    assert "sys_read:entry" in trace.text.getvalue()
    assert trace.device.calls == ["go", "stop"]


def test_options_reach_the_framework_before_programs_do():
    device = FakeDevice()
    session = Session(device, guest_with_symbols(), Output(io.StringIO()), Handlers(print, print))
    session.options.set("strsize", "64")
    session.options.set("timeout", "1s")
    session.enable(Program(()))
    assert device.options == {"strsize": 64}


def test_a_program_the_framework_refuses_is_reported_in_libdtraces_words():
    device = FakeDevice()

    def refuse(program):
        raise DeviceError("EINVAL", "")

    device.enable = refuse
    session = Session(device, guest_with_symbols(), Output(io.StringIO()), Handlers(print, print))
    with pytest.raises(ConsumerError, match=r"^DIF program content is invalid$"):
        session.enable(Program(()))


@pytest.mark.parametrize(
    ("errno", "text"),
    [
        ("EACCES", "Destructive actions not allowed"),
        ("ENOSPC", "Enabling exceeds size of buffer"),
        ("E2BIG", "END enablings exceed size of principal buffer"),
    ],
)
def test_a_trace_that_cannot_begin_says_why(errno, text):
    device = FakeDevice()

    def refuse():
        raise DeviceError(errno, "")

    device.go = refuse
    session = Session(device, guest_with_symbols(), Output(io.StringIO()), Handlers(print, print))
    with pytest.raises(ConsumerError, match=f"^{text}$"):
        session.go()


@pytest.mark.parametrize(
    ("name", "asked", "got", "text"),
    [
        ("bufsize", "4m", 2 << 20, "buffer size lowered to 2m"),
        ("aggsize", "4m", 1 << 10, "aggregation size lowered to 1k"),
        ("specsize", "4m", 1025, "speculation size lowered to 1025 bytes"),
        ("dynvarsize", "4m", 512, "dynamic variable size lowered to 512 bytes"),
        ("cleanrate", "1ns", 200_000, "cleaning rate reduced to 5000 hz"),
        ("cleanrate", "10m", 60 * NANOSECONDS, "cleaning rate increased to once every 60 seconds"),
        ("statusrate", "1h", 1_500_000_000, "status rate increased to once every 1500000000 nanoseconds"),
    ],
)
def test_an_option_the_framework_adjusted_is_reported(name, asked, got, text):
    device = FakeDevice()
    session = Session(device, guest_with_symbols(), Output(io.StringIO()), Handlers(print, print))
    session.options.set(name, asked)
    device.in_force = lambda: {name: got}
    assert session.go() == [text]


def test_an_option_left_as_it_was_asked_is_not_told():
    device = FakeDevice()
    session = Session(device, guest_with_symbols(), Output(io.StringIO()), Handlers(print, print))
    session.options.set("bufsize", "4m")
    assert session.go() == []


def test_a_handler_sees_records_as_values_and_may_hide_them():
    trace = Trace()
    seen = []

    def handler(firing):
        seen.append((firing.probe.description.function, firing.timestamp, firing.values))
        return False

    trace.handlers.firing = handler
    data = trace.device.enabling(
        1,
        10,
        (DIFEXPR, u32(-1), {"statement": 1}),
        (DIFEXPR, string("sh"), {"statement": 2}),
        (PRINTF, u32(5), {"format": "<%d>", "statement": 3}),
        (DIFEXPR, b"\1\2\0\3\4", {"statement": 4}),
    )
    trace.device.fire(1, data, time=1 << 33)
    assert trace.work() == ""
    assert seen == [("sys_read", 1 << 33, (-1, "sh", "<5>", b"\1\2\0\3\4"))]


def test_an_abandoned_consumer_shows_nothing_more():
    trace = Trace()
    trace.device.fire(1, trace.device.enabling(1, 10))
    trace.session.consumer.abandoned = True
    assert trace.work() == ""
