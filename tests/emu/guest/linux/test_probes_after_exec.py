"""Probes of pid and USDT are made again in the program that the target runs after execve, on every ISA."""

import shutil
import struct

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.isa import ISAS
from providers.fidelity import Fidelity
from tests.emu.guest.linux.elf_program import BASE, elf_program
from trapline.consumer.tracer import Tracer
from trapline.machine import linux_machine

# execve(BASE + 0x100, BASE + 0x140, 0)
EXECUTES = {
    "x86_64": "bf00014000be4001400031d2b83b0000000f05",
    "i386": "bb00014000b94001400031d2b80b000000cd80",
    "aarch64": "0008a0d2002080f20108a0d2012880f2020080d2a81b80d2010000d4",
    "riscv64": "3705400013050510b705400093858514130600009308d00d73000000",
}
# fork() or clone(SIGCHLD, 0, 0, 0, 0); then wait4(-1, 0, 0, 0), which fails in the child.
FORKS = {
    "x86_64": "b8390000000f05" + "bfffffffff31f631d24531d2b83d0000000f05",
    "i386": "b802000000cd80" + "bbffffffff31c931d231f6b872000000cd80",
    "aarch64": "200280d2010080d2020080d2030080d2040080d2881b80d2010000d4"
     "00008092010080d2020080d2030080d2882080d2010000d4",
    "riscv64": "130510019305000013060000930600001307000093" + "08c00d73000000"
    + "1305f0ff9305000013060000930600009308401073000000",
}  # fmt: skip
FIB_CALLS = 177


def starter(isa, case, forks=""):
    """Return a program that runs /zoo with the name of a case; with `forks` a child does, too."""
    word = "<3Q" if ISAS[isa].word == 8 else "<3I"
    arguments = struct.pack(word, BASE + 0x100, BASE + 0x120, 0)
    data = b"/zoo".ljust(0x20, b"\0") + case.encode().ljust(0x20, b"\0") + arguments
    return elf_program(isa, bytes.fromhex(forks + EXECUTES[isa]).ljust(0x100, b"\0") + data)


def traced(isa, folder, case, text, fidelity=Fidelity.EXACT, forks=""):
    """Run the starter with a program of D; return the counts by probe, and what was reported."""
    (folder / "starter").write_bytes(starter(isa, case, forks))
    (folder / "starter").chmod(0o755)
    shutil.copy(images.linux(ISAS[isa], "zoo"), folder / "zoo")
    told = []
    options = linux_machine.LinuxOptions(
        ("/starter",), isa=ISAS[isa], root=folder, report=told.append, standard=Standard(), fidelity=fidelity,
        evaltime=linux_machine.EvalTime.EXEC,
    )  # fmt: skip
    machine = linux_machine.start(options)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.session.options.set("zdefs", None)
        tracer.enable(text)
        tracer.run()
        counts = {str(element.keys[0]): element.value for element in tracer.aggregations()}
    assert machine.guest.exit_status < 128
    return counts, told


@pytest.mark.parametrize("isa", ISAS)
def test_functions_of_the_new_program_are_probed(isa, tmp_path):
    text = "pid$target:zoo:fib: { @[probename] = count(); } pid$target:zoo:main:entry { @[execname] = count(); }"
    counts, told = traced(isa, tmp_path, "recursion", text)
    assert (counts["entry"], counts["return"], counts["zoo"], counts["0"]) == (FIB_CALLS, FIB_CALLS, 1, FIB_CALLS)
    assert not told


@pytest.mark.parametrize("isa", ISAS)
def test_markers_of_the_new_program_are_probed_and_told_by_their_semaphores(isa, tmp_path):
    counts, _ = traced(isa, tmp_path, "markers", "zoo$target::: { @[probename] = count(); }")
    assert counts["string"] == 1
    assert counts["http-client-request"] == 3  # it asks its semaphore first


@pytest.mark.parametrize("isa", ISAS)
def test_a_pattern_asks_for_the_markers_of_all_processes(isa, tmp_path):
    text = "zoo*:::string { @[probeprov] = count(); } zoo$target:::string { @[probename] = count(); }"
    counts, _ = traced(isa, tmp_path, "markers", text, forks=FORKS[isa])
    assert counts == {"zoo100": 1, "zoo101": 1, "string": 1}


@pytest.mark.parametrize("isa", ISAS)
def test_freebsd_leaves_the_new_program_alone_and_that_is_said(isa, tmp_path):
    counts, told = traced(
        isa, tmp_path, "recursion", "pid$target:zoo:fib:entry { @[probename] = count(); }", Fidelity.FREEBSD
    )
    assert not counts
    assert told == ["pid 100 runs zoo now: its probes are gone, as on FreeBSD"]


def test_probes_at_addresses_are_not_made_again_and_that_is_said(tmp_path):
    counts, told = traced("x86_64", tmp_path, "recursion", f"pid$target:a.out:-:{BASE:x} {{ @[probename] = count(); }}")
    assert counts == {f"{BASE:x}": 1}
    assert told == ["pid 100 runs zoo now: its address probes are not created again"]
