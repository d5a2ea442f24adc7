"""The profile provider: names, times, and that it changes nothing."""

import itertools

import pytest

from emu.engine import native_callbacks
from emu.guest.base import RunState
from emu.guest.kernel.boot import images
from emu.guest.timers import Timers
from emu.isa import ISAS
from providers.profile import interval_of
from tests.emu.guest.linux.support import expected, zoo
from tests.support.command import run_trapline
from trapline.consumer.tracer import Tracer
from trapline.framework.dif.builtin import Builtins
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest


@pytest.mark.parametrize(
    ("name", "interval"),
    [
        ("tick-1", 1_000_000_000),
        ("tick-1s", 1_000_000_000),
        ("tick-10hz", 100_000_000),
        ("profile-997", 1_003_009),
        ("profile-5000", 200_000),
        ("profile-5001", None),
        ("tick-200us", 200_000),
        ("tick-199us", None),
        ("tick-500MSEC", 500_000_000),
        ("tick-2min", 120_000_000_000),
        ("tick-1hour", 3_600_000_000_000),
        ("tick-1day", 86_400_000_000_000),
        ("tick-0", None),
        ("tick-0s", None),
        ("tick-1x", None),
        ("tick", None),
        ("tick-", None),
        ("entry", None),
    ],
)
def test_a_name_is_a_rate_or_an_interval(name, interval):
    assert interval_of(name) == interval


class Clock:
    """A guest that does nothing but let time pass, ten at a time."""

    def __init__(self):
        self.time = 0
        self.timers = Timers()

    def run(self, deadline):
        return self.timers.run(self._run, lambda: self.time, deadline)

    def _run(self, until):
        while until is None or self.time < until:
            self.time += 10
            if self.time >= 1000:
                return RunState.FINISHED
        return RunState.RUNNING


def test_timers_go_off_in_their_order_and_know_how_late_they_are():
    clock, seen = Clock(), []
    clock.timers.start(0, 35, lambda late: seen.append(("a", clock.time, late)))
    second = clock.timers.start(0, 50, lambda late: seen.append(("b", clock.time, late)))
    assert clock.run(100) is RunState.RUNNING
    assert seen == [("a", 40, 5), ("b", 50, 0), ("a", 70, 0), ("b", 100, 0)]
    clock.timers.stop(second)
    seen.clear()
    assert clock.run(None) is RunState.FINISHED
    assert {name for name, *_ in seen} == {"a"}
    assert len(seen) == 26


def test_a_timers_function_may_end_the_run():
    clock = Clock()
    clock.timers.start(0, 50, lambda _late: clock.timers.interrupt())
    assert clock.run(None) is RunState.RUNNING
    assert clock.time == 50


@pytest.mark.parametrize("isa", ISAS)
def test_ticks_come_at_their_times_whatever_the_guest_does(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="sleep 1")))
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable("tick-100ms { trace(timestamp); trace(arg0 != 0); trace(arg1); } tick-1s { exit(0) }")
        events = tracer.run()
        assert not tracer.faults
    start = machine.guest.now() - 1_000_000_000
    times = [event.values[0] for event in events if event.probe.name == "tick-100ms"]
    assert len(times) in {9, 10}
    assert all(abs(late - early - 100_000_000) < 50_000 for early, late in itertools.pairwise(times))
    assert abs(times[0] - start - 100_000_000) < 50_000_000
    assert tracer.status == 0


@pytest.mark.parametrize("isa", ISAS)
def test_a_profiled_kernel_prints_what_it_prints_unprofiled(isa):
    plain = run_trapline(["dtrace", "--isa", isa, "--console", "-qn", "BEGIN { }"])
    program = "profile-4999 { @ = count(); }"
    run = run_trapline(["dtrace", "--isa", isa, "--console", "-x", "timeout=1s", "-qn", program])
    assert run.stderr == ""
    assert run.stdout.startswith(plain.stdout.rstrip("\n"))
    assert int(run.stdout.split()[-1]) > 100


@pytest.mark.parametrize("isa", ISAS)
def test_both_trap_paths_give_the_same_samples(isa):
    program = "fbt:::entry { } profile-4999 { @[stack(), arg1] = count(); @at[timestamp, arg0] = count(); }"
    command = "ls /; spin 20; pipetest 3; cat /etc/motd"
    runs = [
        run_trapline(["dtrace", "--isa", isa, "--trap", path, "-qn", program, "-c", command])
        for path in ("host", "guest")
    ]
    assert runs[0].returncode == 0
    assert runs[0].stdout == runs[1].stdout
    assert "dtrace_invop" not in runs[0].stdout


@pytest.mark.parametrize("isa", ISAS)
def test_a_trace_waits_for_its_timers_when_the_start_up_script_is_over(isa):
    program = """
        tick-1s { i++; ticks[i] = (int)`ticks; }
        tick-1s /i == 500/ { printf("%d %s %d %d", i, execname, pid, ticks[500] - ticks[400]); exit(3); }
    """
    run = run_trapline(["dtrace", "--isa", isa, "-qn", program])
    assert run.returncode == 3
    assert run.stderr == ""
    assert run.stdout == "500 idle 2 100000\n"


@pytest.mark.parametrize(
    "ending",
    [
        ["-n", "fbt::sys_read:entry"],
        ["-n", "tick-1s", "-c", "sleep 3"],
        ["-n", "tick-1s", "-x", "timeout=20s"],
    ],
)
def test_a_trace_without_timers_or_with_an_end_does_not_wait(ending):
    run = run_trapline(["dtrace", "-q", *ending])
    assert run.returncode == 0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["cxx", "threads", "processes", "signals"])
def test_a_profiled_program_is_the_same_to_the_instruction(isa, case):
    plain = zoo(isa, case)
    profiled = zoo(isa, case, "profile-4999 { @ = count(); }")
    assert profiled.output == expected(case, isa)
    assert profiled.instructions == plain.instructions


@pytest.mark.parametrize("isa", ISAS)
def test_arg1_is_where_a_program_is(isa):
    program = "profile-4999 /pid == $target/ { @[ufunc(arg1)] = count(); kernel = arg0; } END { trace(kernel) }"
    run = run_trapline(["dtrace", "-qn", program, "-c", f"{images.linux(ISAS[isa], 'zoo')} cxx"])
    assert run.stdout.count("zoo`") > 5


def test_a_probe_is_made_when_it_is_named_and_not_by_a_glob():
    run = run_trapline(["dtrace", "-l", "-n", "tick-17ms"])
    assert run.stdout.splitlines()[-1].endswith("tick-17ms")
    run = run_trapline(["dtrace", "-l", "-P", "profile"])
    assert len(run.stdout.splitlines()) == 1 + 13
    run = run_trapline(["dtrace", "-n", "tick-100us"])
    assert run.returncode == 1
    assert "does not match any probes" in run.stderr


@pytest.mark.skipif(not native_callbacks.available(), reason="needs llvmlite")
@pytest.mark.parametrize("probe", ["profile-4999", "cpc:::branches-all-5000"])
def test_the_late_arguments_of_a_timer_are_0_and_python_is_asked_only_once(probe, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    asked, argument = [], Builtins.argument
    monkeypatch.setattr(Builtins, "argument", lambda *call: asked.append(call) or argument(*call))
    machine = boot(kernel_guest(KernelOptions(command="spin 100")))
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable(f"{probe} {{ @[arg5, arg9] = count(); }}")
        tracer.run()
        (element,) = tracer.aggregations()
    assert element.keys == (0, 0)
    assert element.value > 5
    assert len(asked) <= 2  # at the first firing, which is always Python's


@pytest.mark.parametrize("isa", ISAS)
def test_a_timer_is_not_late_by_all_the_time_that_chill_lets_pass(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="getpid 40; spin 50")))
    with Tracer(machine.guest, machine.dtrace, {"destructive": None}) as tracer:
        tracer.enable("syscall::getpid:entry { chill(400000); @n = count(); } profile-4999 { @late = max(arg2); }")
        tracer.run()
        values = {element.name: element.value for element in tracer.aggregations()}
    assert values["n"] == 40
    # Interrupts and timers wait for the end of the system call, and a clock interrupt comes first.
    assert values["late"] < 5 * 400_000
