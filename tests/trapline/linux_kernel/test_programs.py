"""pid and USDT probes of programs on a real Linux kernel, by the kernel's own uprobes."""

import shutil

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.own_files import own_files


@pytest.fixture
def root(tmp_path, isa):
    """A root directory with a program that has symbols and markers."""
    (program,) = own_files("zoo", ISAS[isa])
    (tmp_path / "bin").mkdir()
    shutil.copy(program, tmp_path / "bin" / "zoo")
    return tmp_path


def traced(isa, root, program, command):
    words = ["dtrace", "--guest", "linux-kernel", "--isa", isa, "--root", str(root), "-qn", program, "-c", command]
    return run_trapline(words)


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
    (name, count) = rows(shown.stdout)[-1]
    assert name == "sh"
    assert int(count) > 20


@every_kernel
def test_other_processes_are_refused(isa, root):
    shown = traced(isa, root, "pid1:::entry { @ = count(); }", "zoo recursion 3")
    assert shown.returncode == 1
    assert "failed to grab process 1: only $target can be probed here" in shown.stderr
