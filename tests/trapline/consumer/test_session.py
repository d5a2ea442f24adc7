"""A trace from go to close: how records are printed, from hand-filled buffers."""

from __future__ import annotations

import pytest

from tests.support.fake_guest import KERNEL
from tests.trapline.consumer.support import exact, guest_with_symbols, stack, string, u8, u16, u32, u64
from tests.trapline.consumer.trace import Trace
from trapline.framework.base.program import ActionKind

DIFEXPR, PRINTF = ActionKind.DIFEXPR, ActionKind.PRINTF


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
