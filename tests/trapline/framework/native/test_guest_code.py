"""Machine code reads the same facts of the kernel guest as Python."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from emu.elf.stapsdt import Marker
from emu.isa import ISAS
from providers.fasttrap import usdt
from trapline.framework.base.dif import Subr, Var
from trapline.framework.native.upcall_code import Upcall

BUILT = Path(__file__).parents[4] / "testbins" / "built"
ZOO = BUILT / "x86_64" / "linux" / "zoo"
PROGRAM = """
fbt::*lock*:entry, fbt::*alloc*:return {
    @[probefunc, execname, pid, tid, ppid, uid, stack(), caller] = sum(timestamp);
    @wall = max(walltimestamp);
    @thread[curthread, arg1, errno] = count();
    @depth[probefunc, stackdepth] = max(vtimestamp);
    @regs[probefunc, regs[R_SP], regs[R_PC], regs[7], regs[8], regs[9]] = count();
}
"""
# Memory of the current process: where machine code walks the page tables.
USER_PROGRAM = """
syscall:::entry, fbt::malloc:entry { @user[ustack(), ucaller, ustackdepth, execname] = count(); }
syscall:::entry { @registers[probefunc, uregs[R_SP], uregs[R_PC], uregs[7]] = count(); }
syscall::open:entry, syscall::execve:entry { @path[copyinstr(arg0), jstack(2, 64)] = count(); }
"""
# Probes of each provider, but of SDT, where to read arg6 is a fault: those that trap, and those that do not.
TRAPS, CALLS = "fbt::sys_*:, kinst::sys_read:", "syscall:::, dtmalloc:::, profile-997, cpc:::branches-all-5000"
LATE_ARGUMENTS = """
syscall:::, test:::, vfs:::, proc::: { @late[probename] = sum(arg5); }
syscall::: { @more[probefunc] = sum(arg5 + 3 * arg6 + 5 * arg7 + 7 * arg8 + 11 * arg9); }
syscall:freebsd:mmap:entry { @typed[args[1], args[5]] = count(); }
"""
# The upcalls that read them.
ARGUMENTS = {(Upcall.SCALAR, Var.ARG0 + index) for index in range(10)} | {(Upcall.ELEMENT, Var.ARGS)}
# Arguments of a marker at the entry of a function, where the first argument of that is no address.
MARKERS = {
    "x86_64": "8@%rdi 8@$2 8@$3 8@$4 8@$5 -4@%edi 8@(%rsp) 2@2(%rsp) 8@8(%rdi) -1@$-3 8@$9",
    "i386": "4@4(%esp) 4@$2 4@$3 4@$4 4@$5 -4@4(%esp) 4@(%esp) 2@2(%esp) 4@8(%esi,%edi,4) -1@$-3 4@$9",
    "aarch64": "8@x0 8@2 8@3 8@4 8@5 -4@w0 8@x30 2@[sp, 2] 8@[x0, 8] -1@-3 8@9",
    "riscv64": "8@a0 8@2 8@3 8@4 8@5 -4@a0 8@ra 2@2(sp) 8@8(a0) -1@-3 8@9",
}


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_is_the_same_seen_by_machine_code(isa, shown):
    command = "true; cat /etc/motd; sysctl debug.dtracetest.sdttest=1"
    text, asked = shown("--isa", isa, "-qn", PROGRAM + USER_PROGRAM + LATE_ARGUMENTS, "-c", command)
    assert text.count("\n") > 50
    # Python is asked for a stack at each place once, and while a firing comes from Python.
    assert 0 < sum(asked.values()) < 1000, asked
    assert not asked.keys() & ARGUMENTS


def assert_only_first_hits_ask(text, asked):
    """Each of ten arguments has a line for each probe, and the first hit of a probe is Python's."""
    assert max((count for key, count in asked.items() if key in ARGUMENTS), default=0) <= text.count("\n") // 10


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("probes", [TRAPS, CALLS], ids=["traps", "calls"])
def test_no_argument_of_a_firing_enters_python_on_any_provider(isa, probes, shown):
    sums = "".join(f'@["{n}", probeprov, probefunc, probename] = sum(arg{n}); ' for n in range(10))
    command = "cat /etc/motd; spin 20; cat /etc/motd"
    engines = ("reference", "native")
    text, asked = shown("--isa", isa, "-Zqn", f"{probes} {{ {sums} }}", "-c", command, engines=engines)
    wanted = {part.split(":")[0].split("-")[0] for part in probes.split(", ")} - ({"kinst"} if isa == "i386" else set())
    assert wanted <= set(text.split())
    if probes == CALLS:
        assert not asked.keys() & ARGUMENTS
    else:
        assert_only_first_hits_ask(text, asked)


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
def test_no_argument_of_a_programs_firing_enters_python(isa, shown):
    sums = "".join(f'@["{n}", probeprov, probename] = sum(arg{n}); ' for n in range(10))
    program = f"pid$target:zoo:fib:, syscall:::, cpc:::instructions-user-5000 {{ {sums} }}"
    command = f"{BUILT / isa / 'linux' / 'zoo'} recursion"
    text, asked = shown("-qn", program, "-c", command, engines=("reference", "native"))
    assert {"entry", "return", "instructions-user-5000"} <= set(text.split())
    assert_only_first_hits_ask(text, asked)


@pytest.mark.parametrize("isa", ISAS)
def test_the_arguments_of_a_marker_are_the_same_seen_by_machine_code(isa, shown, monkeypatch):
    def markers(image):
        return [Marker("zoo", "fib", image.symbol("fib").value, 0, MARKERS[isa], (0, 0, 0))]

    monkeypatch.setattr(usdt, "markers", markers)
    program = """
        zoo$target:::fib { @late[arg0, arg5, arg7, arg9] = count(); @place[arg6] = count(); @none = sum(arg8); }
        syscall:::entry { @rest = sum(arg5 + 3 * arg6 + 5 * arg9); }
        syscall::write:entry { @written[args[2]] = count(); }
    """
    text, asked = shown("-qn", program, "-c", f"{BUILT / isa / 'linux' / 'zoo'} recursion")
    assert text.count("\n") > 10
    # The first hit is Python's.
    assert {key for key, count in asked.items() if count > 1} & ARGUMENTS == set()


def test_a_linux_process_is_the_same_seen_by_machine_code(shown):
    program = """
        pid$target:zoo::entry { @[probefunc, execname, pid, tid, ppid, errno] = max(timestamp); }
        pid$target:zoo::entry { @registers[probefunc, uregs[R_SP], uregs[R_PC]] = count(); }
        pid$target:zoo::entry { @frame[probefunc, regs[R_SP], regs[R_PC]] = count(); }
    """
    text, asked = shown("-qn", program, "-c", f"{ZOO} recursion")
    assert "zoo" in text
    assert 0 < sum(asked.values()) < text.count("\n"), asked


def test_the_ancestors_of_a_linux_process_are_known_to_machine_code(shown):
    program = """
        syscall:::entry { @[pid, progenyof($target), progenyof(105), progenyof(1), progenyof(77)] = count(); }
        pid$target:zoo::entry { @far = sum(progenyof(77)); }
    """
    text, asked = shown("-qn", program, "-c", f"{ZOO} processes")
    shown_for = {tuple(map(int, line.split()[:5])) for line in text.splitlines() if line[:1] == " "}
    assert {(106, 1, 1, 0, 0), (100, 1, 0, 1, 0)} <= shown_for  # a grandchild, and its grandparent
    assert (Upcall.SUBROUTINE, Subr.PROGENYOF) not in asked


def test_the_stacks_of_a_linux_process_are_the_same_with_and_without_machine_code(shown):
    program = "pid$target:zoo::entry { @user[ustack(5), ucaller, ustackdepth] = count(); }"
    text, _asked = shown("-qn", program, "-c", f"{ZOO} recursion")
    assert text.count("_start") > 3
