"""pid and USDT probes of programs on a real Linux kernel, by the kernel's own uprobes."""

import shutil

import pytest

import trapline
from emu.guest.base import RunState
from emu.isa import ISAS
from providers.linux_kernel.uprobes import KernelUprobes
from tests.support.command import run_trapline
from tests.support.dynamic_root import fill
from tests.support.engines import shown_by
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.framework.base.dif import Var
from trapline.framework.native.upcall_code import Upcall
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start
from trapline.support.own_files import own_files


@pytest.fixture
def root(tmp_path, isa):
    """A root directory with a program that has symbols and markers."""
    (program,) = own_files("zoo", ISAS[isa])
    (tmp_path / "bin").mkdir()
    shutil.copy(program, tmp_path / "bin" / "zoo")
    return tmp_path


def traced(isa, root, program, command, *flags):
    words = ["dtrace", "--guest", "linux-kernel", "--isa", isa, "--root", str(root), *flags, "-qn", program]
    return run_trapline([*words, "-c", command])


PROGRAM = """
pid$target::fib:entry, pid$target::fib:return, pid$target::ackermann:return { @[probefunc, probename] = count(); }
pid$target::is_odd:return { @results[arg0, arg1] = count(); }
zoo$target::: { @markers[probename, arg0] = count(); }
pid$target::factorial:entry { @stacks[ustack()] = count(); }
syscall::write:entry /execname == "zoo"/ { @writes[usym(ucaller), umod(ucaller)] = count(); }
"""


def rows(text):
    """What aggregations print: the guests lose some output of the program itself at their ends."""
    return sorted(line.split() for line in text.splitlines() if line.startswith(" "))


@every_kernel
def test_probes_of_a_program_fire_as_on_the_linux_guest(isa, root):
    shown = traced(isa, root, PROGRAM, "zoo recursion")
    assert shown.returncode == 0, shown.stderr
    beside = run_trapline(["dtrace", "--isa", isa, "-qn", PROGRAM, "-c", "testbins:zoo recursion"])
    assert rows(shown.stdout) == rows(beside.stdout)
    assert ["fib", "entry", "177"] in rows(shown.stdout)
    assert "zoo`factorial" in shown.stdout


@every_kernel
def test_markers_have_their_arguments(isa, root):
    program = "zoo$target::: { @[probename, arg0] = count(); }"
    shown = traced(isa, root, program, "zoo markers")
    beside = run_trapline(["dtrace", "--isa", isa, "-qn", program, "-c", "testbins:zoo markers"])
    assert len(rows(shown.stdout)) > 5
    assert rows(shown.stdout) == rows(beside.stdout)


@every_kernel
def test_a_command_that_stays_in_the_shell_has_the_shell_as_target(isa, root):
    # Thousands of functions, which are found without symbols; the shell calls a few of them.
    program = "pid$target:::entry { @[execname] = count(); }"
    shown = traced(isa, root, program, "zoo recursion 3; zoo recursion 3")
    assert shown.returncode == 0, shown.stderr
    # It executes the last program itself.
    counts = {name: int(count) for name, count in rows(shown.stdout)}
    assert counts["sh"] > 20
    assert counts["zoo"] > 20


@every_kernel
def test_probes_of_a_process_follow_its_programs_and_not_its_children(isa, root):
    # The shell forks for the first, and executes the second itself.
    program = "pid$target::fib:entry, pid$target::in_child:entry { @[execname, probefunc] = count(); }"
    shown = traced(isa, root, program, "zoo recursion 3; exec zoo processes", "-Z")
    assert shown.returncode == 0, shown.stderr
    assert "fork: exit 22" in shown.stdout
    beside = run_trapline(["dtrace", "--isa", isa, "-qn", program, "-c", "testbins:zoo processes"])
    assert rows(shown.stdout) == rows(beside.stdout)


@every_kernel
def test_a_pattern_asks_for_the_markers_of_all_processes(isa, root):
    program = 'zoo*:::loop-inner { @[probeprov == strjoin("zoo", lltostr(pid))] = count(); @of[probeprov] = count(); }'
    shown = traced(isa, root, program, "zoo markers & zoo markers; wait", "-Z")
    assert shown.returncode == 0, shown.stderr
    assert [row[-1] for row in rows(shown.stdout)] == ["90", "45", "45"]
    # The program tests its semaphores, which count how many probe it.
    assert shown.stdout.count("loop__inner: 45 times") == 2


@every_kernel
def test_a_process_is_grabbed_by_its_number(isa, root):
    program = "pid$target::fib:entry { @[pid == $target] = count(); }"
    executed = 'proc:::exec-success /execname == "zoo"/ { printf("%d ", pid); exit(0); }'
    first = traced(isa, root, executed, "zoo recursion; zoo recursion").stdout.split()[-1]
    shown = traced(isa, root, program, "zoo recursion; zoo recursion", "-p", first)
    assert shown.returncode == 0, shown.stderr
    assert rows(shown.stdout) == [["1", "177"]]
    one = traced(isa, root, "pid1:::entry { @[execname] = count(); }", "zoo recursion 3")
    assert [row[0] for row in rows(one.stdout)] == ["init"]
    never = traced(isa, root, program, "zoo recursion 3", "-p", "9999")
    assert never.returncode == 1
    assert "failed to grab process 9999: no process of that number executes a program" in never.stderr


@every_kernel
def test_a_library_that_is_loaded_later_is_probed(isa, root):
    missing = fill(root, isa)
    if missing:
        pytest.skip(missing)
    program = "pid$target:plugin.so:plugin_enter:entry, zoo$target:::plugin-work { @[probename] = count(); }"
    shown = traced(isa, root, program, "zoo-dyn plugin", "-Z")
    assert shown.returncode == 0, shown.stderr
    found = [row for row in rows(shown.stdout) if row[0] in {"entry", "plugin-work"}]
    assert found == [["entry", "2"], ["plugin-work", "6"]]


@every_kernel
def test_a_page_is_as_before_when_its_last_probe_is_removed(isa, root):
    traced = start(LinuxKernelOptions(isa=ISAS[isa], commands=('zoo recursion; sh -c "exit 7"',), root=root))
    guest = traced.guest
    traced.programs.run_to_event(None)
    programs = guest.programs
    process = programs.process(1)
    uprobes = KernelUprobes(guest, programs, traced.dtrace)
    program = programs.of(process)[0]

    def page(address):
        place = guest.engine.memory.translate(address, root_of(process))
        return place and bytes(guest.engine.memory.ram[place & -4096 : (place & -4096) + 4096])

    def root_of(process):
        table = guest.engine.memory.translate(guest.tasks.word(process.space, "mm_struct.pgd"))
        return guest.isa.paging.root(table)

    entry = program.image.entry + program.bias
    functions = [one.value + program.bias for one in program.image.functions]
    place = next(one for one in functions if page(one) and one // 4096 != entry // 4096)
    before, physical = page(place), guest.engine.memory.translate(place, root_of(process))
    consumer = uprobes.watch_address(process, place)
    assert page(place) != before
    assert len(uprobes.consumers) == 1
    # The machine runs on, and stops anywhere: a worker of the kernel removes the breakpoint.
    guest.run(guest.clock.now() + 3_000_000)
    assert not guest.machine.off
    uprobes.consumers.unregister(consumer)
    assert len(uprobes.consumers) == 0
    if page(place):  # the kernel maps the page of the file again, now or when it is needed
        assert page(place) == before
        assert guest.engine.memory.translate(place, root_of(process)) == physical
    assert guest.run(None) is RunState.FINISHED
    assert guest.machine.status == 7


@every_kernel
def test_no_argument_of_a_programs_firing_enters_python(isa, root, monkeypatch, capfd):
    sums = "".join(f'@["{number}", probefunc, probename] = sum(arg{number}); ' for number in range(10))
    program = f"pid$target:zoo:fib:, pid$target::ackermann: {{ {sums} }}"
    guest = ("--guest", "linux-kernel", "--isa", isa, "--root", str(root))
    text, asked = shown_by(monkeypatch, capfd, *guest, "-Zqn", program, "-c", "zoo recursion")
    arguments = [count for (which, number), count in asked.items() if which == Upcall.SCALAR and number >= Var.ARG5]
    assert text.count("\n") > 100
    # The first hit is Python's, at each place.
    assert max(arguments, default=0) <= text.count("\n") // 10


@every_kernel
def test_hits_of_programs_that_machine_code_serves_are_as_those_that_python_serves(isa, root, monkeypatch):
    program = """
    pid$target:zoo:fib:, pid$target::ackermann:return, pid$target::is_*:entry, pid$target::factorial:return {
        @[probefunc, probename, execname, pid, tid, errno] = count();
        @passed = sum(arg0 + 3 * arg1 + 5 * arg2 + 7 * arg3 + 11 * arg4);
        @late = sum(arg5 + 3 * arg6 + 5 * arg7);
        @stacks[stack(4), ustack(4), caller, ucaller] = count();
        @depths[stackdepth, ustackdepth] = count();
        @registers = sum(uregs[R_SP]);
        @times = sum(vtimestamp); @last = max(timestamp);
    }
    zoo$target::: { @markers[probename, arg0, arg1, arg2, arg3, arg4, arg7] = count(); }
    zoo$target:::string { @strings[copyinstr(arg0)] = count(); }
    """
    shown = {}
    for engine in ("native", "reference"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        shown[engine] = [traced(isa, root, program, f"zoo {case}", "-Z") for case in ("recursion", "markers")]
        assert [one.returncode for one in shown[engine]] == [0, 0], shown[engine]
    assert [one.stdout for one in shown["native"]] == [one.stdout for one in shown["reference"]]
    assert "zoo`fib" in shown["native"][0].stdout


@every_kernel
def test_python_serves_only_the_first_hits_of_a_program(isa, root, monkeypatch):
    served = []
    called = KernelUprobes._called

    def counted(self, *arguments):
        served.append(arguments)
        return called(self, *arguments)

    monkeypatch.setattr(KernelUprobes, "_called", counted)
    # Every instruction of a recursive function.
    program = 'pid$target:zoo:fib: /probename != "return"/ { @ = count(); }'
    found = trapline.trace(program, guest="linux-kernel", isa=isa, root=root, command="zoo recursion").aggregation()
    hits = found if isinstance(found, int) else sum(found.values())
    assert hits > 1500
    assert 0 < len(served) < hits // 2
