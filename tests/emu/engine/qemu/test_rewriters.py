"""What rewrites translated code: each can be switched off by its name, and traces and counts stay the same."""

import os
import subprocess
import sys
from functools import cache
from importlib import import_module

import pytest

from emu.engine import native_callbacks
from emu.engine.qemu import alignment, exit_checks, inlined_count, rewriters
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.rewriters import (
    EXIT_CHECKS,
    INLINE_CACHES,
    INLINE_COUNTS,
    JUMP_CACHE,
    QEMU_HELPERS,
    REWRITERS,
    SSE_ALIGNMENT,
    VARIABLE,
    RewriterError,
)
from emu.engine.state import Word
from emu.isa import ISAS, X86_64
from emu.unicorn_layout import layout, library
from tests.emu.engine.qemu.test_inline_caches import sites
from tests.emu.engine.qemu.test_jump_cache import Machine
from tests.emu.guest.linux.support import expected, zoo
from tests.emu.test_native_firing import Traced
from tests.support.command import ROOT, run_trapline
from tests.support.some import some
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

pytestmark = pytest.mark.skipif(
    not (native_callbacks.available() and inlined_count.POSSIBLE and library.this().is_known),
    reason="blocks are changed by machine code, on Linux and x86-64, in the known library",
)
PROGRAM = """
pid$target:a.out:fib:entry, pid$target:a.out:fib:return { @calls[probename, arg0, arg1] = count(); }
syscall:::entry { @system[probefunc, timestamp] = count(); }
"""
KERNEL_PROGRAM = "fbt::sys_getpid:, fbt::malloc: { @[probefunc, probename] = count(); @time = sum(timestamp); }"
MILLISECONDS = 1_000_000
# What stays of all when one is switched off.
LEFT = {
    EXIT_CHECKS: {INLINE_COUNTS, JUMP_CACHE, INLINE_CACHES, QEMU_HELPERS, SSE_ALIGNMENT},
    INLINE_COUNTS: {EXIT_CHECKS, QEMU_HELPERS, SSE_ALIGNMENT},
    JUMP_CACHE: {EXIT_CHECKS, INLINE_COUNTS, INLINE_CACHES, QEMU_HELPERS, SSE_ALIGNMENT},
    INLINE_CACHES: {EXIT_CHECKS, INLINE_COUNTS, JUMP_CACHE, QEMU_HELPERS, SSE_ALIGNMENT},
    QEMU_HELPERS: {EXIT_CHECKS, INLINE_COUNTS, JUMP_CACHE, INLINE_CACHES, SSE_ALIGNMENT},
    SSE_ALIGNMENT: {EXIT_CHECKS, INLINE_COUNTS, JUMP_CACHE, INLINE_CACHES, QEMU_HELPERS},
    "all": set(),
}


def active(isa):
    """Return which rewriters have changed an engine's code."""
    machine = Machine(isa)
    machine.sum()
    state = machine.engine.counter.state
    cpu = Cpu(ISAS[isa])
    traced = Traced(ISAS[isa]).enable("entry", "return")
    traced.guest.call(30)
    calls = sites(traced.guest.engine) if state[Word.FREE] else {}
    table = state[Word.JUMPS] and state[Word.LATEST]
    seen = {
        QEMU_HELPERS: bool(ISAS[isa].unicorn.helpers) and rewriters.runs(QEMU_HELPERS),
        SSE_ALIGNMENT: alignment.runs(ISAS[isa].unicorn),
        EXIT_CHECKS: exit_checks.mark(cpu) is not None,
        INLINE_COUNTS: state[Word.FREE] > machine.engine.counter._written[0],
        JUMP_CACHE: bool(table and machine.found),
        INLINE_CACHES: bool(calls),
    }
    return {name for name, is_active in seen.items() if is_active}


@pytest.mark.parametrize("isa", ISAS)
def test_the_variable_switches_each_off(isa, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    model = ISAS[isa].unicorn
    others = {QEMU_HELPERS: bool(model.helpers), SSE_ALIGNMENT: model.aligned is not None}
    here = {name for name in REWRITERS if others.get(name, True)}
    assert active(isa) == here
    for name, left in LEFT.items():
        monkeypatch.setenv(VARIABLE, name)
        assert active(isa) == left & here, name
    monkeypatch.setenv(VARIABLE, f"{JUMP_CACHE},{EXIT_CHECKS}")
    assert active(isa) == {INLINE_COUNTS, INLINE_CACHES, QEMU_HELPERS, SSE_ALIGNMENT} & here


@pytest.mark.parametrize(("name", "boxed"), [("", True), (QEMU_HELPERS, False)])
def test_helpers_are_replaced_for_a_process(name, boxed):
    code = "0x2010_9053, 0xE200_0553, 0x0000_8067"  # fneg.s ft0,ft1; fmv.x.d a0,ft0; ret
    program = (
        "import struct; from emu.guest.function import FunctionGuest; from emu.isa import ISAS;"
        f"guest = FunctionGuest(ISAS['riscv64'], struct.pack('<3I', {code}));"
        "guest.engine.cpu.write_public('mstatus', 3 << 13);"
        "guest.engine.cpu.write_public('f1', 0xFFFF_FFFF_3F80_0000); print(hex(guest.call()))"
    )
    environment = {**os.environ, VARIABLE: name, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    assert ended.stdout.strip() == ("0xffffffffbf800000" if boxed else "0xbf800000")


def linux_run(isa):
    """Return the trace of a traced Linux program, with its count of instructions."""
    ran = zoo(isa, "recursion", PROGRAM)
    assert ran.output == expected("recursion", isa)
    assert ran.of("calls")
    assert ran.of("system")
    return ran.instructions, ran.found


def kernel_run(isa):
    """Return the trace of the teaching kernel, with its count of instructions."""
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command="getpid 20000")))
    guest = machine.guest
    with Tracer(guest, machine.dtrace, {"aggrate": "1us"}, provide=machine.probes.provide) as tracer:
        tracer.enable(KERNEL_PROGRAM)
        tracer.session.go()
        guest.run(guest.now() + 10 * MILLISECONDS)
        tracer.session.work()
        counts = {(element.name, element.keys): element.value for element in tracer.aggregations()}
    assert sum(counts.values()) > 1000
    return guest.engine.instructions, counts


@cache
def with_all(run, isa):
    return run(isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("run", [linux_run, kernel_run])
def test_traces_and_counts_are_the_same_without_it(isa, name, run, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    monkeypatch.delenv(VARIABLE, raising=False)
    before = with_all(run, isa)
    monkeypatch.setenv(VARIABLE, name)
    assert run(isa) == before


def test_in_another_library_none_runs_and_traces_and_counts_are_the_same(monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    monkeypatch.delenv(VARIABLE, raising=False)
    before = with_all(linux_run, X86_64.name)
    monkeypatch.setattr(layout._Current, "layout", layout.WheelLayout({}))
    assert not any(map(rewriters.runs, REWRITERS))
    assert active(X86_64.name) == set()
    assert linux_run(X86_64.name) == before


def test_an_unknown_name_is_an_error_of_one_line_with_the_names(monkeypatch):
    monkeypatch.setenv(VARIABLE, f"{JUMP_CACHE},links")
    with pytest.raises(RewriterError, match="'links' is not a rewriter"):
        rewriters.switched_off()
    run = run_trapline(["dtrace", "-qn", "BEGIN { exit(0); }"])
    known = ", ".join((*REWRITERS, "all"))
    expected_line = f"trapline: {VARIABLE}: 'links' is not a rewriter; there are {known}\n"
    assert (run.returncode, run.stdout, run.stderr) == (1, "", expected_line)


def test_doctor_lists_them_with_the_reason(monkeypatch):
    monkeypatch.setenv(VARIABLE, INLINE_COUNTS)
    lines = run_trapline(["doctor"]).stdout.splitlines()
    states = {
        line.split()[0]: line.split(maxsplit=1)[1].split(":")[0] for line in lines if line.split()[0] in REWRITERS
    }
    assert states == {
        EXIT_CHECKS: "on",
        INLINE_COUNTS: f"off, since {VARIABLE} names it",
        JUMP_CACHE: f"off, since it needs {INLINE_COUNTS}",
        INLINE_CACHES: f"off, since it needs {INLINE_COUNTS}",
        QEMU_HELPERS: "on",
        SSE_ALIGNMENT: "on",
    }


def test_each_names_its_module_and_the_page_has_the_same_table():
    page = (ROOT / "docs" / "engine.md").read_text()
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in page.splitlines() if line[:1] == "|"]
    for name, rewriter in some(REWRITERS.items()):
        assert import_module(rewriter.module).__doc__, name
        assert (
            f"`{name}`",
            rewriter.does,
            f"`{rewriter.module}`",
            (rewriter.needs and f"`{rewriter.needs}`") or "",
        ) in rows
