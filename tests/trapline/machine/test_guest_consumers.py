"""A consumer inside the kernel guest: DTrace's own ioctls, made by a program of the guest."""

from __future__ import annotations

from functools import cache

import pytest

from emu.guest.base import RunState
from emu.isa import ISAS
from providers.kinst import PORTS as KINST_PORTS
from tests.support.command import run_trapline
from trapline.consumer.tracer import Tracer
from trapline.d.compiler import CompileContext, Form, compile_program
from trapline.dof import encode
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.options import Options

# Virtual nanoseconds.
LIMIT = 2_000_000_000


@cache
def compiled(text):
    """Return the DOF of a program; it is the same for every ISA."""
    device = boot(kernel_guest(KernelOptions())).dtrace.open()
    return encode(compile_program(text, CompileContext(Options(), device.probes, form=Form.NAME)))


def run(isa, command, **files):
    screen = bytearray()
    added = {f"dof/{name}": data for name, data in files.items()}
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=command, added=added, console=screen.extend)))
    text = machine.guest.image.segments[0]
    pristine = machine.guest.engine.read(text.vaddr, len(text.data))
    while machine.guest.run(LIMIT) is RunState.RUNNING:  # an exit() makes the run come back
        assert machine.guest.now() < LIMIT, screen.decode()
    assert machine.guest.engine.read(text.vaddr, len(text.data)) == pristine
    assert not any(point.installed for point in machine.guest.patcher.listing())
    assert not any(map(machine.dtrace.enablings, machine.dtrace.table))
    return screen.decode().splitlines()[3:]


PROGRAM = """
    BEGIN { trace(1); }
    syscall::getpid:entry { trace(execname); trace(probemod); }
    fbt::sys_getpid:entry { trace(7); trace((int)-5); }
    END { trace(2); }
"""


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_of_the_guest_traces_another(isa):
    lines = run(isa, "dtrace /dof/program getpid 2", program=compiled(PROGRAM))
    seen = [line.split()[2:] for line in lines if line.startswith("  0 ")]
    twice = [["getpid:entry", "getpid", "freebsd"], ["sys_getpid:entry", "7", "-5"]] * 2
    if isa == "riscv64" and ["sys_getpid:entry", "7", "-5"] not in seen:
        twice = [["getpid:entry", "getpid", "freebsd"]] * 2  # a leaf function that saves no ra has no probes there
    assert seen == [[":BEGIN", "1"], *twice, [":END", "2"]]
    assert "getpid: 2 calls" in lines


AGGREGATING = """
    syscall::read:return, syscall::write:return
    /execname == "dd"/
    {
        @[execname, probefunc] = count();
        @sizes[probefunc] = quantize(arg0);
        @steps = lquantize(arg0, 0, 5000, 1000);
        @zero[(char)(arg0 == 0), (short)-1, (int)-1] = lquantize(arg0, 1, 2, 1);
        @total[errno] = sum(arg0);
        @least = min(arg0);
        @most = max(arg0);
        @mean = avg(arg0);
    }
    tick-1ms { @none[(long)0] = quantize(0, 0); }
"""
READING = "dd if=/dev/zero of=/zeros bs=4096 count=5"


@pytest.mark.parametrize("isa", ISAS)
def test_the_guests_own_consumer_shows_aggregations_as_dtrace_does(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=READING)))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}) as tracer:
        tracer.enable(AGGREGATING)
        tracer.run()
        expected = tracer.session.report.unprinted()
    shown = run(isa, f"dtrace /dof/aggregating {READING}", aggregating=compiled(AGGREGATING))
    assert expected.count("Distribution") == 5
    assert [line for line in shown if not line.startswith(("dtrace: ", "dd: "))] == expected.splitlines()


@pytest.mark.parametrize("isa", ISAS)
def test_many_snapshots_add_up(isa):
    program = compiled("syscall::getpid:entry { @[execname] = count(); @few = max(timestamp % 7); }")
    lines = run(isa, "dtrace /dof/calls getpid 5000", calls=program)
    assert [line.split() for line in lines if line.startswith("  getpid")] == [["getpid", "5000"]]


@pytest.mark.parametrize("isa", ISAS)
def test_a_consumers_descriptors_are_those_of_its_device(isa):
    rows = [line.split() for line in run(isa, "dtrace /dof/none fstat", none=compiled("BEGIN { trace(1); }"))]
    table = rows[1 + rows.index("USER CMD PID FD MOUNT INUM MODE SZ|DV R/W".split()) :]
    assert [row[4:] for row in table if row[1] == "dtrace" and row[3] == "3"] == [
        ["/dev", row[5], "crw-rw-rw-", "dtrace/dtrace", "rw"] for row in table if "dtrace/dtrace" in row
    ]
    assert sum("dtrace/dtrace" in row for row in table) == 1  # its child has closed it


@pytest.mark.parametrize("isa", ISAS)
def test_fstat_shows_who_has_which_files_open(isa):
    rows = [line.split() for line in run(isa, "cd /etc; sleep 1 < motd | fstat -p 1; fstat; fstat -x")]
    heads = [number for number, row in enumerate(rows) if row[0] == "USER"]
    init, everybody = rows[heads[0] + 1 : heads[1]], rows[heads[1] + 1 :]
    assert [row[1:5] for row in init[:3]] == [["init", "1", name, "/"] for name in ("text", "wd", "root")]
    assert all(row[1] == "init" for row in init)
    assert [row[-3:] for row in init[3:]] == [["crw-rw-rw-", "console", "rw"]] * 3
    directory = next(row for row in everybody if row[1:4:2] == ["fstat", "wd"])
    assert directory[6].startswith("drwx")
    assert directory[5] != next(row for row in init if row[3] == "wd")[5]
    assert ["fstat:", "usage:", "fstat", "[-p", "pid]"] in rows


@pytest.mark.parametrize("isa", ISAS)
def test_exit_ends_a_trace(isa):
    lines = run(isa, "dtrace /dof/ends", ends=compiled("tick-10ms { trace(3); exit(0); }"))
    assert lines[-1].split()[2:] == [":tick-10ms", "3", "0"]


@pytest.mark.parametrize("isa", ISAS)
def test_a_consumer_that_dies_leaves_nothing(isa):
    program = compiled("syscall::getpid:entry { trace(ppid); }")
    pid = run(isa, "dtrace /dof/who getpid 1", who=program)[-1].split()[-1]
    lines = run(isa, f"dtrace /dof/who kill -9 {pid}; echo over", who=compiled("fbt:::entry { trace(1); }"))
    assert lines[-1] == "over"
    assert not [line for line in lines if line.startswith("  0 ")]


@pytest.mark.parametrize("isa", ISAS)
def test_the_devices_are_there_while_dtrace_is_loaded(isa):
    lines = run(
        isa,
        "ls /dev/dtrace; kldunload dtraceall; ls /dev/dtrace; kldstat; dtrace /dof/program true; kldstat",
        program=compiled("BEGIN { trace(1); }"),
    )
    assert lines[:2] == ["dtrace", "helper"]
    before, after = "\n".join(lines).split("matched 1 probe\n")
    assert before.count(".ko") == 0
    assert after.count(".ko") == (10 if isa in KINST_PORTS else 9)


@pytest.mark.parametrize("isa", ISAS)
def test_the_flag_of_static_probes_is_up_while_the_guest_watches_one(isa):
    """The random provider of the generation with a flag, enabled inside the guest, while we look on from outside."""
    read = "dd if=/dev/urandom of=/dev/null bs=64 count=1"
    dof = {"dof/random": compiled("random::: { trace(arg0); }")}
    options = KernelOptions(
        isa=ISAS[isa], sdt=2018, command=f"sleep 0.6; {read}; dtrace /dof/random {read}; {read}", added=dof
    )
    machine = boot(kernel_guest(options))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}, foreign=machine.names) as tracer:
        tracer.enable("fbt::read_random_uio:entry { trace(`sdt_probes_enabled); }")
        assert [event.values for event in tracer.run()] == [(0,), (1,), (0,)]


@pytest.mark.parametrize("isa", ISAS)
def test_a_file_in_use_stays(isa):
    lines = run(
        isa, "dtrace /dof/program kldunload dtraceall; kldstat", program=compiled("syscall:::entry { trace(1); }")
    )
    loaded = {line.split()[4] for line in lines if "0x" in line}
    assert {"systrace.ko", "dtrace.ko", "opensolaris.ko"} <= loaded
    assert "fbt.ko" not in loaded


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("bad", [b"", b"\x7fDOF", b"\0" * 200])
def test_what_is_not_a_program_is_refused(isa, bad):
    lines = run(isa, "dtrace /dof/bad true; echo $?", bad=bad)
    assert lines[0].startswith("dtrace: failed to enable '/dof/bad':")


@pytest.mark.parametrize("isa", ISAS)
def test_an_unknown_request_is_refused(isa):
    assert "Inappropriate ioctl" in run(isa, "callnum 54 0 1")[1]


@pytest.mark.parametrize("isa", ISAS)
def test_kldstat_shows_what_is_loaded(isa):
    run_ = run_trapline(["kldstat", "--isa", isa, "sumcall"])
    names = [line.split()[-1] for line in run_.stdout.splitlines()[1:]]
    assert run_.returncode == 0
    assert names[0] == "kernel"
    assert set(names) == {
        "kernel",
        *(
            f"{name}.ko"
            for name in "dtraceall dtrace opensolaris dtmalloc fasttrap fbt kinst profile sdt systrace".split()
            if name != "kinst" or isa in KINST_PORTS
        ),
        "sumcall.ko",
        "echo.ko",
    }


def test_kldstat_tells_what_cannot_be_loaded():
    run_ = run_trapline(["kldstat", "nothing"])
    assert run_.returncode == 1
    assert run_.stderr == "kldload: can't load nothing: No such file or directory\n"
    assert run_trapline(["kldstat", "x; poweroff"]).returncode == 2
