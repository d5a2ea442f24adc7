"""The file uprobe_events: adding, appending, deleting, listing."""

import pytest

from emu.isa import X86_64
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.events import EventSet


@pytest.fixture
def events():
    found = EventSet(X86_64)
    found.write("p:g/e /bin/a:0x10 %di\nr:f /bin/a:0x20 $retval\n# a comment\n")
    return found


def test_reading_lists_what_was_written(events):
    assert str(events).splitlines() == [
        "p:g/e /bin/a:0x0000000000000010 arg1=%di",
        "r:uprobes/f /bin/a:0x0000000000000020 arg1=$retval",
    ]


def test_the_same_name_again_is_another_place_of_the_event(events):
    events.write("p:g/e /bin/a:0x30 %si")
    assert len(events.definitions()) == 3


@pytest.mark.parametrize(
    ("line", "identifier"),
    [
        ("r:g/e /bin/a:0x30 %di", "DIFF_PROBE_TYPE"),
        ("p:g/e /bin/a:0x30 %di:u8", "DIFF_ARG_TYPE"),
        ("p:g/e /bin/a:0x10 %di", "SAME_PROBE"),
        ("-:", "BAD_DEFINITION"),
    ],
)
def test_a_clash_is_refused(events, line, identifier):
    with pytest.raises(UprobeEventError) as caught:
        events.write(line)
    assert caught.value.id == identifier


@pytest.mark.parametrize("line", ["-:g/e", "-:g/", "-:g/e /bin/a:16", "-:g/e /bin/a:0x10 arg1=%di"])
def test_a_deletion_takes_the_event_out(events, line):
    events.write(line)
    assert [one.event for one in events.definitions()] == ["f"]


def test_a_deletion_of_what_is_not_there_is_an_error(events):
    with pytest.raises(LookupError, match="g/nosuch"):
        events.write("-:g/nosuch")


def test_truncating_deletes_everything(events):
    events.truncate()
    assert not str(events)
