"""The kernel guest with several CPUs: its work is the same, shared, and the same in every run."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import AARCH64, ISAS, RISCV64, X86_64
from emu.native import available
from trapline.cli import main
from trapline.consumer.tracer import Tracer
from trapline.framework.native.consumer import NativeConsumer
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest

# Programs at once: two of them compute, the others use pipes and children.
WORK = "spin 60 & spin 60 & ls /bin | wc & wait"
PROGRAM = """
profile-997 { @ticks[cpu] = count(); }
fbt::sys_*:entry { @calls[cpu] = count(); }
lockstat:::, sched::: { @events[probename] = count(); }
lockstat:::adaptive-spin { @spun[cpu] = max(arg1); }
profile-4999 /execname == "spin"/ { @spins[cpu, pid] = count(); }
"""


def dtrace(*arguments):
    """Return what a command prints on its standard output, in words."""
    result = CliRunner().invoke(main, ["dtrace", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.split()


class Run:
    """A traced run: what it printed, how long it took, and the aggregations by name."""

    def __init__(self, isa, cpus, program=PROGRAM, work=WORK, **options):
        screen = bytearray()
        chosen = KernelOptions(isa=isa, cpus=cpus, command=work, console=screen.extend, **options)
        machine = boot(kernel_guest(chosen))
        self.guest = machine.guest
        booted = self.guest.now()
        text = self.guest.image.segments[0]
        pristine = self.guest.engine.read(text.vaddr, len(text.data))
        with Tracer(self.guest, machine.dtrace) as tracer:
            if program:
                tracer.enable(program)
                tracer.run()
            else:
                self.guest.run(None)
            self.found = {(element.name, element.keys): element.value for element in tracer.aggregations()}
        assert self.guest.engine.read(text.vaddr, len(text.data)) == pristine
        self.printed = sorted(screen.decode().splitlines()[4 if cpus > 1 else 3 :])
        self.took = self.guest.now() - booted

    def of(self, name):
        return {keys: value for (aggregation, keys), value in self.found.items() if aggregation == name}


@pytest.mark.parametrize("isa", ISAS)
def test_work_is_shared_by_cpus(isa):
    isa = ISAS[isa]
    one, plain, four = Run(isa, 1, program=""), Run(isa, 4, program=""), Run(isa, 4)
    assert one.printed == four.printed
    assert four.took < 0.75 * one.took
    # Probes take no time and do not change the order of turns, whoever fires them.
    assert four.took == plain.took
    ticks, calls = four.of("ticks"), four.of("calls")
    assert set(ticks) == set(calls) == {(0,), (1,), (2,), (3,)}
    assert len(set(ticks.values())) == 1  # profile-997 fires on every CPU, also on those that wait
    assert max(four.of("spun").values()) > 0
    assert len({cpu for cpu, _pid in four.of("spins")}) > 1


# What each CPU has for itself: buffers, aggregations, clause-locals, random numbers, dynamic variables' memory.
OWN = """
fbt::*:entry { @calls[cpu, probefunc] = count(); this->n = cpu + 1; self->depth++; seen[cpu]++; }
fbt::*:entry { @own[cpu] = sum(this->n); @deepest[cpu] = max(self->depth); @last = max(seen[cpu]); @all = count(); }
fbt::*:return { self->depth = 0; }
fbt::sys_*:entry /cpu != 1/ { this->s = strjoin(probefunc, execname); printf("%d %s %d", cpu, this->s, rand() & 7); }
fbt::sys_*:entry { self->spec = speculation(); speculate(self->spec); printf("%d began", cpu); }
fbt::sys_*:return /self->spec && cpu != 2/ { commit(self->spec); self->spec = 0; }
fbt::sys_*:return /self->spec/ { discard(self->spec); self->spec = 0; }
"""


@pytest.mark.skipif(not available(), reason="machine code needs llvmlite")
def test_machine_code_of_clauses_is_each_cpus_own(monkeypatch):
    made, compile_ = [], NativeConsumer.compile

    def compiled(self, clause):
        made.append(compile_(self, clause))
        return made[-1]

    monkeypatch.setattr(NativeConsumer, "compile", compiled)
    printed = []
    for engine in ("native", "reference"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        options = ("--isa", "i386", "--cpus", "3", "-q", "-x", "bufpolicy=ring", "-x", "nspec=8")
        printed.append(dtrace(*options, "-n", OWN, "-c", "ls | wc & true & wait"))
    native, python = printed
    assert native == python
    assert "began" in "".join(native)
    assert len(made) == 7
    assert all(made)


@pytest.mark.exhaustive
def test_a_run_depends_on_its_seed_alone():
    program, work = "fbt::sys_*:entry, lockstat:::adaptive-spin { @[cpu, probename] = count(); }", "true & wait"
    first, python, other = (
        Run(RISCV64, 2, program, work, accelerated=accelerated, seed=seed)
        for accelerated, seed in ((None, 1), (False, 1), (None, 2))
    )
    assert first.found == python.found != other.found
    assert first.took == python.took


def test_the_guests_own_vector_counts_the_same():
    program, work = "fbt::*fork*:entry { @[cpu, probefunc] = count(); }", "true & true & wait"
    host, guest = (Run(AARCH64, 2, program, work, trap_path=path) for path in TrapPath)
    assert host.found == guest.found
    assert host.took == guest.took


@pytest.mark.parametrize("isa", [RISCV64, X86_64], ids=lambda isa: isa.name)
def test_a_programs_own_probes_fire_with_several_cpus(isa):
    program = "pid$target:::entry { @[probefunc] = count(); }"
    one, two = (dtrace("--isa", isa.name, "--cpus", cpus, "-n", program, "-c", "spin 2") for cpus in "12")
    assert "main" in one
    assert one == two


def test_the_kernel_with_one_cpu_is_another_one():
    with pytest.raises(NoKernelError, match="for one CPU"):
        kernel_guest(KernelOptions(isa=AARCH64, cpus=2, sdt=2013))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cpus", "9"), "--cpus 9: expected a number from 1 to 8"),
        (("--cpus", "x"), "--cpus x: expected a number from 1 to 8"),
        (("--seed", "-1"), "--seed -1: expected a number from 0"),
        (("--cpus", "2", "--guest", "linux-kernel"), "a Linux kernel has one CPU"),
    ],
)
def test_wrong_numbers_are_one_line(arguments, message):
    result = CliRunner().invoke(main, ["dtrace", *arguments, "-n", "BEGIN { exit(0); }"])
    assert result.exit_code != 0
    assert message in result.output
