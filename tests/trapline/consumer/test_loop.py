"""-x hosttimeout: the host's clock ends a trace, too."""

import threading

import pytest

from tests.support.command import run_trapline
from trapline.consumer import loop
from trapline.consumer.loop import HostLimit

MILLISECOND = 1_000_000


def test_a_trace_that_would_go_on_is_stopped_and_shows_what_it_has():
    program = "tick-1ms { @ = count(); } END { trace(7); }"
    done = run_trapline(["dtrace", "-x", "hosttimeout=300ms", "-qn", program])
    assert done.returncode == 1
    assert done.stderr.startswith("dtrace: stopped after 0.3 s of the host's time (-x hosttimeout), at ")
    assert done.stderr.count("\n") == 1
    assert done.stdout.startswith("7")


def test_a_trace_that_is_over_before_says_nothing():
    done = run_trapline(["dtrace", "-x", "hosttimeout=100s", "-qn", "BEGIN { exit(3); }"])
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize("value", ["x", "-1", "1y", "9999999999999d"])
def test_a_time_that_is_not_one_is_refused(value):
    done = run_trapline(["dtrace", "-x", f"hosttimeout={value}", "-n", "BEGIN"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "dtrace: failed to set -x hosttimeout: Invalid value for specified option\n"


@pytest.mark.parametrize("option", ["timeout", "hosttimeout"])
def test_a_time_without_a_unit_is_refused(option):
    """Sixty nanoseconds are over at once."""
    done = run_trapline(["dtrace", "-x", f"{option}=60", "-n", "BEGIN"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"dtrace: failed to set -x {option}: 60 has no unit: write 60s or 60ms\n"


@pytest.mark.parametrize(
    ("program", "command", "told"),
    [
        ("tick-1ms { @ = count(); }", "spin 100000000", True),
        ("tick-1ms { @ = count(); }", "echo", False),
        ("tick-1ms { exit(0); }", "spin 100000000", False),
    ],
)
def test_a_command_that_the_guests_time_cuts_off_is_told(program, command, told):
    done = run_trapline(["dtrace", "-x", "timeout=30ms", "-qn", program, "-c", command])
    assert done.returncode == 0
    line = "dtrace: stopped after 0.03 s of the guest's time (-x timeout): a command has not ended\n"
    assert done.stderr == (line if told else "")


def test_what_cannot_be_interrupted_is_ended_with_one_line(monkeypatch):
    monkeypatch.setattr(loop, "GRACE", 0.2)
    ended, told = threading.Event(), []
    limit = HostLimit("dtrace", lambda text: (told.append(text), ended.set()))
    interrupts = []
    limit.interrupt = lambda: interrupts.append(1)
    limit.start(10 * MILLISECOND)
    assert ended.wait(10)
    assert limit.passed
    assert len(interrupts) > 1, "a guest that was about to run is interrupted again"
    assert told == ["dtrace: ended 0.2 s after 0.01 s of the host's time (-x hosttimeout): it could not be stopped"]


def test_a_limit_that_is_stopped_does_nothing():
    limit = HostLimit("dtrace", lambda _text: pytest.fail("it ended the process"))
    limit.start(2000 * MILLISECOND)
    limit.stop()
    for thread in threading.enumerate():
        if thread.name == "hosttimeout":
            thread.join(10)
    assert not limit.passed
