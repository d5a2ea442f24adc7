"""Machine code reads the same facts of the kernel guest as Python."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from emu.isa import ISAS
from trapline import cli
from trapline.framework.native.upcalls import Upcalls

ZOO = Path(__file__).parents[4] / "testbins" / "built" / "x86_64" / "linux" / "zoo"
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


@pytest.fixture
def shown(monkeypatch, capfd):
    """Run a command in this process with both engines; what it shows, and machine code's upcalls, by kind."""

    def run(*arguments):
        asked, called, texts = Counter(), Upcalls._called, []

        def counting(self, which, *operands):
            asked[which] += 1
            return called(self, which, *operands)

        monkeypatch.setattr(Upcalls, "_called", counting)
        monkeypatch.setattr(sys, "argv", ["trapline", "dtrace", *arguments])
        for engine in ("python", "native"):
            monkeypatch.setenv("TRAPLINE_ENGINE", engine)
            with suppress(SystemExit):
                cli.main()
            texts.append(capfd.readouterr())
        assert texts[0] == texts[1]
        return texts[0].out, asked

    return run


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_is_the_same_seen_by_machine_code(isa, shown):
    text, asked = shown("--isa", isa, "-qn", PROGRAM + USER_PROGRAM, "-c", "true; cat /etc/motd")
    assert text.count("\n") > 50
    # Python is asked for a stack at each place once, and while a firing comes from Python.
    assert 0 < sum(asked.values()) < 1000, asked


def test_a_linux_process_is_the_same_seen_by_machine_code(shown):
    program = """
        pid$target:zoo::entry { @[probefunc, execname, pid, tid, ppid, errno] = max(timestamp); }
        pid$target:zoo::entry { @registers[probefunc, uregs[R_SP], uregs[R_PC]] = count(); }
        pid$target:zoo::entry { @frame[probefunc, regs[R_SP], regs[R_PC]] = count(); }
    """
    text, asked = shown("-qn", program, "-c", f"{ZOO} recursion")
    assert "zoo" in text
    assert 0 < sum(asked.values()) < text.count("\n"), asked


def test_the_stacks_of_a_linux_process_are_the_same_with_and_without_machine_code(shown):
    program = "pid$target:zoo::entry { @user[ustack(5), ucaller, ustackdepth] = count(); }"
    text, _asked = shown("-qn", program, "-c", f"{ZOO} recursion")
    assert text.count("_start") > 3
