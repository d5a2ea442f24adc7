"""Deadlines of a kernel guest that hides instructions: each is reached in one run, at the same time as in many."""

import pytest

from emu.engine.run import Running
from emu.engine.state import NO_CLOCK
from emu.guest.kernel.boot import images
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import ILLUMOS_SDT, SDT_GENERATION, KernelOptions, boot, kernel_guest

# A system call's probe hides a third of the instructions: those of the kernel that lead to it.
PROGRAM = "syscall:::entry { @ = count(); }"
TICKS = 20
isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


class Run:
    """A guest that asks for its process's number, for some clock interrupts."""

    def __init__(
        self,
        isa,
        monkeypatch,
        *,
        accelerated=None,
        program=PROGRAM,
        ticks=TICKS,
        path=TrapPath.HOST,
        sdt=SDT_GENERATION,
    ):
        self.ticks = []
        self.ends = []
        self.runs = 0
        options = KernelOptions(isa=isa, command="getpid 1000000", accelerated=accelerated, trap_path=path, sdt=sdt)
        machine = boot(kernel_guest(options))
        guest = self.guest = machine.guest
        deliver = guest._deliver_tick
        with Tracer(guest, machine.dtrace, {}, provide=machine.probes.provide) as tracer:
            tracer.enable(program)
            tracer.session.go()
            guest.run(guest.now() + 10_000_000)
            monkeypatch.setattr(guest, "_deliver_tick", lambda: (self.note(self.ticks), deliver()))
            monkeypatch.setattr(Running, "_run_once", self.counted(Running._run_once))
            for part in range(ticks):
                guest.run(guest.now() + 1_000_000 + 137_000 * part)
                self.note(self.ends)
        monkeypatch.undo()

    def note(self, times):
        guest = self.guest
        times.append((guest.now(), guest.engine.instructions, guest.clock.state(), guest.engine.pc))

    def counted(self, once):
        def run_once(running, count):
            self.runs += 1
            return once(running, count)

        return run_once


@isas
def test_a_clock_interrupt_is_reached_in_one_run(isa, monkeypatch):
    run = Run(isa, monkeypatch)
    assert len(run.ticks) > TICKS
    assert run.runs <= len(run.ticks) + len(run.ends)


@pytest.mark.exhaustive
@isas
@pytest.mark.parametrize("accelerated", [None, False], ids=["machine code", "Python"])
def test_the_times_are_those_of_runs_that_end_before_them(isa, accelerated, monkeypatch):
    ticks = TICKS if accelerated is None else 2
    moving = Run(isa, monkeypatch, accelerated=accelerated, ticks=ticks)
    monkeypatch.setattr("emu.engine.time.clock.VirtualClock.of_deadlines", lambda _clock: NO_CLOCK)
    again = Run(isa, monkeypatch, accelerated=accelerated, ticks=ticks)
    assert moving.ticks == again.ticks
    assert moving.ends == again.ends
    assert moving.runs < again.runs


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", TrapPath)
@isas
def test_deadlines_of_timers_are_the_same_too(isa, path, monkeypatch):
    program = f"{PROGRAM} profile-4999 {{ @ = count(); }} fbt::sys_getpid:entry {{ @ = count(); }}"
    moving = Run(isa, monkeypatch, program=program, path=path)
    monkeypatch.setattr("emu.engine.time.clock.VirtualClock.of_deadlines", lambda _clock: NO_CLOCK)
    again = Run(isa, monkeypatch, program=program, path=path)
    assert (moving.ticks, moving.ends) == (again.ticks, again.ends)


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_deadlines_are_the_same_where_hits_add_instructions(isa, monkeypatch):
    """illumos' SDT: a hit counts an instruction that is not executed, so less and less is hidden."""
    if not images.kernel(ISAS[isa], f"sdt-{ILLUMOS_SDT}").is_file():
        pytest.skip("no kernel with illumos' SDT for this ISA")
    program = "sched::: { @ = count(); }"
    moving = Run(ISAS[isa], monkeypatch, program=program, sdt=ILLUMOS_SDT)
    monkeypatch.setattr("emu.engine.time.clock.VirtualClock.of_deadlines", lambda _clock: NO_CLOCK)
    again = Run(ISAS[isa], monkeypatch, program=program, sdt=ILLUMOS_SDT)
    assert (moving.ticks, moving.ends) == (again.ticks, again.ends)
