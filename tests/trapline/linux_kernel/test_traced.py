"""A real Linux kernel under trace.  These tests need kernels: `make kernels` fetches them."""

import pytest

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from tests.support.command import run_trapline


def kernel_params():
    """The ISAs that have a machine; one whose kernel is not there is skipped, with the reason."""
    for isa in BOARDS:
        try:
            store.stored(ISAS[isa])
        except KernelFileError as error:
            yield pytest.param(isa, marks=pytest.mark.skip(reason=str(error)))
        else:
            yield isa


every_kernel = pytest.mark.parametrize("isa", list(kernel_params()))


def traced(isa, program, command, *flags):
    """Run dtrace on the kernel of an ISA; return what it prints, the command's output included."""
    result = run_trapline(["dtrace", "--guest", "linux-kernel", "--isa", isa, "-qn", program, *flags, "-c", command])
    assert result.returncode == 0, result.stderr
    return result.stdout


@every_kernel
def test_functions_are_counted_and_the_program_prints_as_ever(isa):
    shown = traced(isa, "fbt::vfs_write:entry /pid == $target/ { @ = count(); }", "echo unchanged")
    assert shown.startswith("unchanged\n")
    assert int(shown.split()[-1]) > 0


@every_kernel
def test_entries_and_returns_agree_and_have_arguments(isa):
    program = """
    fbt::vfs_write:entry /pid == $target/ { self->count = arg2; @["in"] = sum(arg2); }
    fbt::vfs_write:return /self->count && arg1 == self->count/ { @["out"] = sum(arg1); self->count = 0; }
    END { printa("%s %@d\\n", @); }
    """
    shown = traced(isa, program, "echo 1234567").split("\n")
    assert shown[0] == "1234567"
    assert {"in 8", "out 8"} <= set(shown)


@every_kernel
def test_types_of_the_kernel_are_known(isa):
    program = """
    fbt::do_sys_openat2:entry /pid == $target/ { @[curthread->comm, args[2]->flags] = count(); }
    END { printa("<%s %d %@d>\\n", @); printf("%d\\n", `jiffies_64 > 0); }
    """
    shown = traced(isa, program, "cat /etc/motd")
    assert "<cat " in shown
    assert shown.rstrip().endswith("1")


@every_kernel
def test_a_run_is_the_same_twice(isa):
    program = 'fbt::vfs_*:entry { @[execname, probefunc] = count(); } END { printf("%d\\n", timestamp); }'
    assert traced(isa, program, "ls -l /") == traced(isa, program, "ls -l /")


@every_kernel
def test_hits_that_machine_code_serves_are_as_those_that_python_serves(isa, monkeypatch):
    program = """
    fbt::vfs_*:entry, fbt::vfs_*:return, sdt:::sched_switch, fbt::*alloc*:entry {
        @[execname, pid, tid, ppid, uid, gid, errno, probefunc, stack()] = count();
        @callers[caller, curthread] = sum(arg1);
        @times = sum(vtimestamp); @late = max(walltimestamp); @last = max(timestamp);
    }
    syscall::openat:entry { @paths[copyinstr(arg1)] = count(); }
    syscall:::entry { @passed[probefunc] = sum(arg0 + 3 * arg1 + 5 * arg2 + 7 * arg3 + 11 * arg4 + 13 * arg5); }
    syscall:::return { @results[probefunc, errno, arg0, arg1, arg2, arg5] = count(); }
    syscall::write:entry { @descends[progenyof(0), progenyof(1), progenyof(2), pid != ppid] = count(); }
    fbt::vfs_*: { @more[probefunc] = sum(arg5 + 3 * arg7); }
    """
    shown = {}
    for engine in ("native", "reference"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        shown[engine] = traced(isa, program, "cat /nope; seq 1 300 | sort | tail -n 1")
    assert shown["native"] == shown["reference"]
    assert len(shown["native"].splitlines()) > 500


@every_kernel
def test_stacks_lead_to_the_entry_of_the_kernel(isa):
    shown = traced(isa, "fbt::vfs_read:entry /pid == $target/ { stack(); exit(0); }", "dd if=/etc/motd of=/dev/null")
    assert "ksys_read" in shown


def test_no_kernel_is_said_in_one_line(tmp_path, monkeypatch):
    command = ["dtrace", "--guest", "linux-kernel", "--isa", "riscv64", "-n", "BEGIN"]
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path))
    result = run_trapline(command)
    assert result.returncode == 1
    assert result.stderr == "dtrace: no RISC-V Linux kernel is installed; fetch one with: trapline kernel get riscv64\n"


@every_kernel
def test_system_calls_have_names_arguments_results_and_errors(isa):
    program = """
    syscall::openat:entry /pid == $target/ { self->path = copyinstr(arg1); }
    syscall::openat:return /self->path != NULL/ {
        printf("<%s %d %d>\\n", self->path, (int)arg1, errno);
        self->path = 0;
    }
    """
    shown = traced(isa, program, "cat /etc/motd /nonexistent 2>/dev/null")
    assert "</etc/motd 3 0>" in shown
    assert "</nonexistent -1 2>" in shown


@every_kernel
def test_tracepoints_are_switched_on_wherever_they_are_compiled_in(isa):
    program = """
    sdt:kernel:sched:sched_switch { @["switch"] = count(); }
    sdt:kernel:sched:sched_process_exit { @[args[0]->comm] = count(); }
    END { printa("<%s %@d>\\n", @); }
    """
    shown = traced(isa, program, "seq 1 1000 | sort | tail -n 1")
    assert shown.startswith("999\n")
    assert "<seq 1>" in shown
    assert "<tail 1>" in shown
    assert int(shown.partition("<switch ")[2].partition(">")[0]) > 5


@every_kernel
def test_a_program_that_needs_the_kernels_library_makes_no_probes_but_its_own(isa):
    first, second = "fbt::vfs_read:entry", "fbt::vfs_write:entry { trace(curpsinfo->pr_psargs); }"
    result = run_trapline(["dtrace", "--guest", "linux-kernel", "--isa", isa, "-ln", first, "-n", second])
    assert result.returncode == 0, result.stderr
    read, write = (int(line.split()[0]) for line in result.stdout.splitlines()[1:])
    assert write == read + 1


@every_kernel
def test_a_kernel_that_panics_shows_its_log_and_says_so_in_one_line(isa):
    result = run_trapline(["kernel", "boot", "--isa", isa, "--append", "rdinit=/nonexistent root=/dev/none"])
    assert result.returncode == 1
    *log, last = result.stderr.splitlines()
    assert any("Kernel panic - not syncing" in line for line in log) or "Kernel panic" in result.stdout
    assert "the kernel panicked: VFS: Unable to mount root fs" in last


def test_an_isa_without_a_machine_is_refused():
    result = run_trapline(["dtrace", "--guest", "linux-kernel", "--isa", "i386", "-n", "BEGIN"])
    assert (result.returncode, result.stderr) == (1, "dtrace: there is no machine for Linux kernels of i386\n")


@every_kernel
def test_the_function_tracer_is_switched_on_and_off_beside_our_breakpoints(isa):
    work = "seq 1 20 | sort -n | tail -n 1"
    command = (
        f"cd /sys/kernel/tracing; echo vfs_read vfs_write > set_ftrace_filter; {work}; echo function > current_tracer; "
        f"{work}; echo 0 > tracing_on; grep -c vfs_ trace; echo nop > current_tracer; {work}"
    )
    shown = traced(isa, "fbt::vfs_*:entry, fbt::vfs_*:return { @[probename] = count(); }", command).split()
    counts = dict(zip(shown[4::2], map(int, shown[5::2]), strict=True))
    assert [shown[0], shown[1], shown[3]] == ["20"] * 3
    assert int(shown[2]) > 5
    assert min(counts["entry"], counts["return"]) > 50
