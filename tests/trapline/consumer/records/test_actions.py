"""Actions that happen when their record is consumed."""

from __future__ import annotations

from tests.trapline.consumer.support import string, u32, u64
from tests.trapline.consumer.trace import FAULT, Trace
from trapline.framework.base.program import ActionKind, LibraryAction

DIFEXPR, PRINTF, LIBACT = ActionKind.DIFEXPR, ActionKind.PRINTF, ActionKind.LIBACT


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
