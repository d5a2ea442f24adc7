"""A trace from go to close: what is printed when, in virtual time, from hand-filled buffers."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from emu.guest.base import RunState
from tests.support.fake_guest import KERNEL
from tests.trapline.consumer.support import FakeDevice, exact, guest_with_symbols, stack, string, u8, u16, u32, u64
from trapline.consumer.consume import Handlers
from trapline.consumer.errors import ConsumerError
from trapline.consumer.output import Output
from trapline.consumer.session import Session, Work
from trapline.framework.device import DeviceError
from trapline.framework.program import ActionKind, LibraryAction, Program
from trapline.options import NANOSECONDS

DIFEXPR, PRINTF, LIBACT = ActionKind.DIFEXPR, ActionKind.PRINTF, ActionKind.LIBACT

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


def test_a_record_is_a_line_under_the_heading():
    trace = Trace()
    data = trace.device.enabling(1, 10, (DIFEXPR, u64(42)))
    trace.device.fire(1, data)
    trace.device.fire(1, data)
    assert trace.work() == exact("""
        CPU     ID                    FUNCTION:NAME$
          0     10                   sys_read:entry                42$
          0     10                   sys_read:entry                42$
        """)


def test_the_heading_comes_once():
    trace = Trace()
    data = trace.device.enabling(1, 1)
    trace.device.fire(1, data)
    assert trace.work().count("FUNCTION:NAME") == 1
    trace.device.fire(1, data)
    assert trace.work() == "  0      1                           :BEGIN \n"


def test_without_data_nothing_is_printed():
    assert Trace().work() == ""


def test_a_clause_without_actions_prints_its_line():
    trace = Trace(("quiet", None))
    trace.device.fire(1, trace.device.enabling(1, 10))
    assert trace.work() == ""


def test_all_kinds_of_data_stand_in_their_columns():
    trace = Trace()
    data = trace.device.enabling(
        1, 10, (DIFEXPR, u8(200)), (DIFEXPR, u16(7)), (DIFEXPR, u32(-1)), (DIFEXPR, string("sh")), (DIFEXPR, u64(5))
    )
    trace.device.fire(1, data)
    line = trace.work().splitlines()[1]
    assert line == f"  0     10                   sys_read:entry  200     7       -1  {'sh':<33}                5"


def test_quiet_output_is_only_what_was_asked_for():
    trace = Trace(("quiet", None))
    data = trace.device.enabling(
        1, 10, (DIFEXPR, u32(-1)), (DIFEXPR, string("sh")), (PRINTF, u32(3), {"format": "[%d]\n"})
    )
    trace.device.fire(1, data)
    assert trace.work() == "-1sh[3]\n"


def test_a_stack_follows_its_line_indented_by_14():
    trace = Trace()
    data = trace.device.enabling(1, 10, (ActionKind.STACK, stack(KERNEL + 0x2010, KERNEL + 0x1000), {"argument": 20}))
    trace.device.fire(1, data)
    assert trace.work() == exact("""
        CPU     ID                    FUNCTION:NAME$
          0     10                   sys_read:entry $
                      kernel`read_random+0x10$
                      kernel`sys_read$
        $
        """)


def test_a_user_stack_names_the_program():
    trace = Trace(("stackindent", "2"))
    pcs = u64(42) + stack(0x401000, 0x10, frames=4)
    trace.device.fire(1, trace.device.enabling(1, 10, (ActionKind.USTACK, pcs, {"argument": 4})))
    assert trace.work().endswith(" \n  sh`main\n  0x10\n\n")


def test_helper_strings_stand_for_frames_or_below_them():
    guest = guest_with_symbols()
    guest.user_symbols = {0x401000: ("/bin/sh", "main"), 0x500000: ("/lib/x", "")}
    trace = Trace(("stackindent", "0"), guest=guest)
    pcs = u64(42) + stack(0x10, 0x401000, frames=2) + b"java()\0@note\0".ljust(16, b"\0")
    trace.device.fire(1, trace.device.enabling(1, 10, (ActionKind.USTACK, pcs, {"argument": 16 << 32 | 2})))
    assert trace.work().endswith(" \njava()\nsh`main\n  [ note ]\n\n")


def test_symbols_have_a_column_of_50():
    trace = Trace(("quiet", None))
    data = trace.device.enabling(
        1,
        10,
        (ActionKind.SYM, u64(KERNEL + 0x2004)),
        (ActionKind.MOD, u64(KERNEL + 0x2004)),
        (ActionKind.UADDR, u64(42) + u64(0x401004)),
    )
    trace.device.fire(1, data)
    assert trace.work() == f"  {'kernel`read_random':<50}  {'kernel':<50}  {'sh`main+0x4':<50}"


def test_tracemem_dumps_even_text_and_shows_no_more_than_asked():
    trace = Trace(("quiet", None))
    data = trace.device.enabling(
        1,
        10,
        (ActionKind.TRACEMEM_DYNSIZE, u64(2), {"statement": 1}),
        (ActionKind.TRACEMEM, b"text", {"statement": 1}),
    )
    trace.device.fire(1, data)
    assert trace.work().splitlines()[2] == "         0: 74 65                                            te"


def test_records_of_several_cpus_merge_by_time():
    trace = Trace(("temporal", "1"), cpus=2)
    data = trace.device.enabling(1, 10)
    for cpu, time in ((0, 10), (0, 40), (1, 20), (1, 30)):
        trace.device.fire(1, data, time, cpu)
    assert [line[:3] for line in trace.work().splitlines()[1:]] == ["  0", "  1", "  1", "  0"]


def test_without_temporal_each_cpu_comes_whole():
    trace = Trace(cpus=2)
    data = trace.device.enabling(1, 10)
    for cpu, time in ((0, 10), (1, 20), (0, 40)):
        trace.device.fire(1, data, time, cpu)
    assert [line[:3] for line in trace.work().splitlines()[1:]] == ["  0", "  0", "  1"]


@pytest.mark.parametrize("options", [(), (("temporal", "1"),)])
def test_begin_comes_first_and_end_last_whatever_the_cpu(options):
    trace = Trace(*options, cpus=3)
    begin, end, read = (trace.device.enabling(epid, epid) for epid in (1, 2, 10))
    trace.device.fire(10, read, 5, 0)
    trace.device.fire(1, begin, 5, 1)
    trace.device.fire(2, end, 5, 0)
    trace.device.fire(10, read, 6, 2)
    assert [line.split()[2] for line in trace.work().splitlines()[1:]] == [
        ":BEGIN",
        "sys_read:entry",
        "sys_read:entry",
        ":END",
    ]


def test_padding_between_records_is_skipped():
    trace = Trace()
    data = trace.device.enabling(1, 10, (DIFEXPR, u32(1)))
    trace.device.buffers[0] += bytes(4)
    trace.device.fire(1, data)
    trace.device.buffers[0] += bytes(8)
    trace.device.fire(1, data)
    trace.device.buffers[0] += bytes(12)
    assert len(trace.work().splitlines()) == 3


def test_flow_indentation_nests_calls():
    trace = Trace(("flowindent", None))
    for probe in (12, 10, 1, 11, 13):
        trace.device.fire(probe, trace.device.enabling(probe, probe))
    assert trace.work() == exact("""
        CPU FUNCTION                                 $
          0  => read                                  $
          0    -> sys_read                            $
          0     | :BEGIN                              $
          0    <- sys_read                            $
          0  <= read                                  $
        """)


def test_two_enablings_of_an_entry_probe_indent_once():
    trace = Trace(("flowindent", None))
    for epid, probe in ((1, 10), (2, 10), (3, 11), (4, 11)):
        trace.device.fire(epid, trace.device.enabling(epid, probe))
    lines = [line[3:].rstrip() for line in trace.work().splitlines()[1:]]
    assert lines == ["  -> sys_read", "   | sys_read:entry", "   | sys_read:return", "  <- sys_read"]


def test_flow_keeps_its_heading_when_quiet():
    trace = Trace(("flowindent", None), ("quiet", None))
    trace.device.fire(1, trace.device.enabling(1, 10))
    assert trace.work() == f"CPU {'FUNCTION':<41}\n  0 {' -> sys_read':<41} "


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


def act(action, *values, statement=1):
    return [(LIBACT, value, {"argument": action, "statement": statement}) for value in values]


def test_setopt_changes_how_later_records_look():
    trace = Trace()
    quieten = trace.device.enabling(1, 10, *act(LibraryAction.SETOPT, string("quiet"), string("yes")))
    number = trace.device.enabling(2, 10, (DIFEXPR, u64(7)))
    trace.device.fire(2, number)
    trace.device.fire(1, quieten)
    trace.device.fire(2, number)
    assert trace.work().endswith("                 7\n  0     10                   sys_read:entry 7")


def test_a_setopt_that_fails_is_a_fault_of_the_library():
    trace = Trace()
    trace.device.fire(1, trace.device.enabling(1, 10, *act(LibraryAction.SETOPT, string("bufsize"), string("4m"))))
    trace.work()
    assert trace.faults[0].message == (
        f'{FAULT}couldn\'t set option "bufsize" to "4m": Operation illegal when tracing is active'
    )


def test_freopen_sends_output_to_a_file_until_it_is_restored(tmp_path):
    trace = Trace(("quiet", None))
    path = tmp_path / "out"
    freopen = ActionKind.FREOPEN
    to_file = trace.device.enabling(1, 10, (freopen, u32(0), {"format": str(path), "statement": 1}))
    restore = trace.device.enabling(2, 10, (freopen, u32(0), {"statement": 1}))
    text = trace.device.enabling(3, 10, (PRINTF, u32(5), {"format": "%d\n"}))
    for epid, data in ((3, text), (1, to_file), (3, text), (2, restore), (3, text)):
        trace.device.fire(epid, data)
    assert trace.work() == "5\n5\n"
    assert path.read_text() == "5\n"


def test_a_freopen_that_fails_is_a_fault_and_output_stays(tmp_path):
    trace = Trace(("quiet", None))
    fields = [(ActionKind.FREOPEN, u32(0), {"format": str(tmp_path / "no" / "out"), "statement": 1})]
    trace.device.fire(1, trace.device.enabling(1, 10, *fields))
    trace.work()
    assert trace.faults[0].message.endswith(f'couldn\'t freopen() "{tmp_path}/no/out": No such file or directory')


def test_ftruncate_empties_the_output_file(tmp_path):
    trace = Trace(("quiet", None))
    path = tmp_path / "out"
    trace.session.output.redirect(str(path))
    text = trace.device.enabling(1, 10, (PRINTF, u32(5), {"format": "%d\n"}))
    trace.device.fire(1, text)
    trace.device.fire(2, trace.device.enabling(2, 10, *act(LibraryAction.FTRUNCATE, u32(0))))
    trace.device.fire(1, text)
    trace.work()
    assert path.read_text() == "5\n"


def test_system_runs_its_command_after_what_was_printed():
    trace = Trace(("quiet", None))
    data = trace.device.enabling(
        1,
        10,
        (PRINTF, u32(5), {"format": "%d\n", "statement": 1}),
        (ActionKind.SYSTEM, u32(7), {"format": "echo %d", "statement": 2}),
    )
    trace.device.fire(1, data)
    trace.work()
    assert trace.commands == [("echo 7", "5\n")]


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
