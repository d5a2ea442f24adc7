"""Locks of a kernel with several CPUs: threads spin and block."""

import re

import pytest
from click.testing import CliRunner

from emu.guest.kernel.guest import KernelGuest
from emu.isa import ISAS
from trapline.cli import main
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

# Pipes whose ends are on one CPU at times, since the others are busy.
BUSY = "spin 400 & spin 400 & spin 400 & spin 400 & seq 3000 | cat | cat | wc & seq 3000 | cat | cat | wc &"
WORK = "spin 200 & seq 3000 | head -n 3000 | wc; wait"


def lockstat(*flags):
    return CliRunner().invoke(main, ["lockstat", *flags, "sh", "-c", WORK])


@pytest.mark.parametrize("isa", ISAS)
def test_contention_is_shown_and_repeatable(isa):
    done = lockstat("--isa", isa, "--cpus", "2")
    assert done.exit_code == 0
    found = dict(re.findall(r"^(.+): (\d+) events in", done.output, re.MULTILINE))
    assert int(found["Adaptive mutex spin"]) > 0
    assert int(found["Adaptive mutex block"]) > 0
    assert re.search(r"^ +\d+ .* Giant +giant_enter\+0x", done.output, re.MULTILINE)
    assert re.search(r"^ +\d+ .* _sleep\+0x", done.output, re.MULTILINE), "who is woken waits for the pipe's mutex"
    assert "    3000    3000   13893\n" in done.output
    assert lockstat("--isa", isa, "--cpus", "2").output == done.output


def test_another_seed_is_another_run():
    first, other = (lockstat("--cpus", "2", "--seed", seed, "-b").output for seed in "12")
    assert first != other


def test_one_cpu_has_no_contention_of_mutexes():
    assert "Adaptive mutex" not in lockstat().output


@pytest.mark.parametrize("isa", ISAS)
def test_cpu_is_the_one_that_has_waited(isa):
    guest: KernelGuest = kernel_guest(KernelOptions(ISAS[isa], cpus=4, command=f"{BUSY} {WORK}"))
    machine = boot(guest)
    own = guest.image.symbol("cpu_self").value  # its first field is the number of the CPU
    with Tracer(guest, machine.dtrace) as tracer:
        tracer.enable(
            f"""
            lockstat:::adaptive-block, lockstat:::adaptive-spin {{ @waits[probename, cpu] = count(); }}
            lockstat:::adaptive-block, lockstat:::adaptive-spin /cpu != *(int *){own:#x}/ {{ @wrong = count(); }}
            """
        )
        tracer.run()
        keys = {element.keys for element in tracer.aggregations()}
    assert () not in keys, "the kernel has another number for this CPU"
    assert {cpu for name, cpu in keys if name == "adaptive-spin"} == set(range(4))
    assert {name for name, _ in keys} == {"adaptive-spin", "adaptive-block"}


@pytest.mark.parametrize("command", ["lockstat", "plockstat"])
def test_a_wrong_number_is_one_line(command):
    done = CliRunner().invoke(main, [command, "--cpus", "9", "ls"])
    assert done.exit_code != 0
    assert f"{command}: --cpus 9: expected a number from 1 to 8\n" in done.output


@pytest.mark.parametrize("isa", ISAS)
def test_plockstat_counts_the_same_holds_on_several_cpus(isa):
    def holds(*flags):
        shown = CliRunner().invoke(main, ["plockstat", "--isa", isa, "-H", *flags, "contend"]).output
        lines = re.findall(r"^ +(\d+) +\d+ contend`(adaptive|table)_lock", shown, re.MULTILINE)
        return sorted((name, int(count)) for count, name in lines)

    assert holds("--cpus", "4", "--seed", "3") == holds() != []
