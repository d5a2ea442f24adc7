"""The command line of lockstat, its program, and the counts it shows."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from trapline.commands.lockstat import UsageError, parse, usage
from trapline.consumer.tracer import Tracer
from trapline.lockstat.events import EVENTS, of_kinds
from trapline.lockstat.gather import Limits, gather
from trapline.lockstat.program import Gathering, program
from trapline.lockstat.records import LockRecord
from trapline.lockstat.report import Report, ReportLayout
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

each_isa = pytest.mark.parametrize("isa", ISAS)
COMMAND = "pipetest 8; dd if=/dev/md0 of=/dev/null bs=512 count=2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "a command is missing"),
        ("-Z true", "option -Z not recognized"),
        ("-n many true", "-n many: not a number"),
        ("-s 51 true", "max stack depth is 50"),
        ("-i 1001 true", "-i 1001: the interrupt rate is 1 to 1000 Hz"),
        ("-i 0 true", "-i 0: the interrupt rate is 1 to 1000 Hz"),
        ("-e 3-1 true", "-e 3-1: events are numbered 0 to 63"),
        ("-gb true", "'-g' requires at least '-s 1' data gathering"),
        ("--isa vax true", "--isa vax: choose from x86_64, aarch64, riscv64, i386"),
    ],
)
def test_a_command_line_that_is_wrong_is_refused_in_a_line(arguments, message):
    with pytest.raises(UsageError) as caught:
        parse(arguments.split())
    assert str(caught.value) == message


def test_flags_are_lockstats():
    request = parse("-CH -s 5 -D 3 -wkP -n 100 -d 7 -x aggrate=1s sleep 1 -k".split())
    assert request.events == of_kinds("CH")
    assert (request.gathering.stack, request.gathering.histogram, request.gathering.duration) == (5, True, 7)
    assert request.layout.top == 3
    assert request.layout.by_time
    assert request.coalescing.any_caller
    assert request.coalescing.functions
    assert request.options == [("aggrate", "1s")]
    assert request.machine.command == "sleep 1 -k"


def test_contention_is_watched_when_nothing_else_is_said():
    assert parse(["true"]).events == of_kinds("C")
    assert parse(["-e", "1,33-35", "true"]).events == {1, 33, 34, 35}
    assert parse(["-A", "true"]).events == of_kinds("CH")


def test_the_usage_lists_every_event_once():
    lines = usage().splitlines()
    for event in EVENTS.values():
        assert lines.count(f"{event.number:4} = {event.description}") == 1
    assert "Hold-time events (lockstat -H or lockstat -e 32-37):" in lines


@each_isa
@pytest.mark.parametrize(
    "gathering",
    [Gathering(), Gathering(histogram=True, stack=3), Gathering(trace=True, stack=2), Gathering(duration=100, rate=50)],
)
def test_every_program_compiles_and_is_undone(isa, gathering):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa])))
    options = {"zdefs": None, "aggsize": "4m", "dynvarsize": "1m"}
    with Tracer(machine.guest, machine.dtrace, options, foreign=machine.names) as tracer:
        assert tracer.enable(program(EVENTS, gathering)) > 10
    assert not any(point.installed for point in machine.guest.patcher.listing())


def gathered(isa, events, gathering):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=COMMAND)))
    return gather(
        machine, program(events, gathering), Limits(10_000, gathering.histogram, gathering.stack), [], trace=False
    )


@each_isa
def test_holds_are_the_acquisitions_and_histograms_the_holds(isa):
    found = gathered(isa, of_kinds("H"), Gathering(histogram=True))
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=COMMAND)))
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(
            "lockstat:::adaptive-release, lockstat:::spin-release, lockstat:::sx-release { @[probename] = count(); }"
        )
        tracer.run()
        released = {element.keys[0]: element.value for element in tracer.aggregations()}
    counts = {32: "adaptive-release", 33: "spin-release"}
    for event, name in counts.items():
        held = sum(record.count for record in found.records if record.event == event)
        # A lock that was taken before the trace began is released in it.
        assert released[name] - 2 <= held <= released[name]
    for record in found.records:
        assert record.histogram.total() == record.count
        low = sum((1 << power >> 1) * number for power, number in record.histogram.items())
        assert low <= record.time < 2 * max(low, 1) or record.time == low
    assert not found.dropped


@each_isa
def test_what_is_shown_adds_up(isa):
    found = gathered(isa, of_kinds("H"), Gathering())
    layout = ReportLayout(found.elapsed, parsable=True)
    lines = [line.split() for line in Report(layout, lambda _address: None).tables(found.records, found.records)]
    assert sum(int(line[1]) for line in lines) == sum(record.count for record in found.records)
    assert sum(int(line[5]) for line in lines) == sum(record.time for record in found.records)


def names(address):
    return {0x1000: ("first", 0, 32), 0x1010: ("first", 16, 32), 0x1040: ("first", 64, 32)}.get(address)


@pytest.mark.parametrize(
    ("lock", "shown"),
    [(0x1000, "first"), (0x1010, "first+0x10"), (0x1040, "0x1040"), (0x2000, "0x2000"), (0x0100_0004, "cpu[0]+Idle")],
)
def test_a_lock_is_named_as_far_as_it_has_a_name(lock, shown):
    lines = list(
        Report(ReportLayout(10**9), names).tables([LockRecord(32, lock, 0x1000)], [LockRecord(32, lock, 0x1000)])
    )
    assert lines[1] == "Adaptive mutex hold: 1 events in 1.000 seconds (1 events/sec)"
    assert lines[5] == f"    1 100% 100% 0.00        0 {shown:<22} {'first':<24}"
