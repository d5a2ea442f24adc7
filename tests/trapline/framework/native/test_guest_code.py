"""Machine code reads the same facts of the kernel guest as Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.framework.native.upcalls import Upcalls

ZOO = Path(__file__).parents[4] / "testbins" / "built" / "x86_64" / "linux" / "zoo"
PROGRAM = """
fbt::*lock*:entry, fbt::*alloc*:return {
    @[probefunc, execname, pid, tid, ppid, uid, stack(), caller] = sum(timestamp);
    @wall = max(walltimestamp);
    @thread[curthread, arg1, errno] = count();
    @depth[probefunc, stackdepth] = max(vtimestamp);
}
"""
# Memory of the current process: where machine code walks the page tables.
USER_PROGRAM = """
syscall:::entry, fbt::malloc:entry { @user[ustack(), ucaller, ustackdepth, execname] = count(); }
syscall:::entry { @registers[probefunc, uregs[R_SP], uregs[R_PC], uregs[7]] = count(); }
syscall::open:entry, syscall::execve:entry { @path[copyinstr(arg0), jstack(2, 64)] = count(); }
"""


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_is_the_same_seen_by_machine_code(isa, monkeypatch):
    asked = Counter()
    called = Upcalls._called

    def counting(self, which, *operands):
        asked[which] += 1
        return called(self, which, *operands)

    monkeypatch.setattr(Upcalls, "_called", counting)
    shown = {}
    for engine in ("python", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        result = run_trapline(["dtrace", "--isa", isa, "-qn", PROGRAM + USER_PROGRAM, "-c", "true; cat /etc/motd"])
        assert result.returncode == 0, result.stderr
        shown[engine] = result.stdout
    assert shown["native"] == shown["python"]
    firings = 1000
    assert shown["native"].count("\n") > 50
    # Python is asked for a stack at each place once, and while a firing comes from Python.
    assert sum(asked.values()) < firings, asked


def test_a_linux_process_is_the_same_seen_by_machine_code(monkeypatch):
    program = """
        pid$target:zoo::entry { @[probefunc, execname, pid, tid, ppid, errno] = max(timestamp); }
        pid$target:zoo::entry { @registers[probefunc, uregs[R_SP], uregs[R_PC]] = count(); }
    """
    asked = Counter()
    called = Upcalls._called

    def counting(self, which, *operands):
        asked[which] += 1
        return called(self, which, *operands)

    monkeypatch.setattr(Upcalls, "_called", counting)
    shown = []
    for engine in ("python", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        result = run_trapline(["dtrace", "-qn", program, "-c", f"{ZOO} recursion"])
        assert result.returncode == 0, result.stderr
        shown.append(result.stdout)
    assert shown[0] == shown[1]
    assert "zoo" in shown[0]
    assert sum(asked.values()) < shown[0].count("\n"), asked


def test_the_stacks_of_a_linux_process_are_the_same_with_and_without_machine_code(monkeypatch):
    shown = []
    for engine in ("python", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        program = "pid$target:zoo::entry { @user[ustack(5), ucaller, ustackdepth] = count(); }"
        result = run_trapline(["dtrace", "-qn", program, "-c", f"{ZOO} recursion"])
        assert result.returncode == 0, result.stderr
        shown.append(result.stdout)
    assert shown[0] == shown[1]
    assert shown[0].count("_start") > 3
