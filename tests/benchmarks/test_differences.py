"""What is measured in turns: the median of the differences, and no figure where they are noise."""

from functools import partial

import pytest

from benchmarks import differences
from benchmarks.differences import NOISE, Spread, beyond, firing
from benchmarks.figures import Scale
from benchmarks.prose import Rows
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.cost.kernel import machine
from trapline.machine.kernel_machine import SDT_GENERATION


@pytest.mark.parametrize(
    ("samples", "cell"),
    [
        ([90, 100, 110, 5_000, 95], 100),
        ([50, 100, 150, 40, 170], 100),
        ([40, 100, 160, 30, 170], NOISE),
        ([-20, -21, -22, -20, -19], NOISE),
        ([0], NOISE),
        ([7], 7),
    ],
)
def test_a_figure_is_the_median_unless_the_quartiles_are_further_apart(samples, cell):
    assert Spread.of(samples).cell() == cell


def test_a_multiple_of_noise_is_no_figure():
    clear, noise = Spread(9, 10, 11), Spread(-9, 10, 30)
    assert clear.over(Spread(4, 5, 6)) == 2
    assert clear.over(noise) == noise.over(clear) == ""


def test_an_action_is_compared_with_the_base_of_its_own_turn(monkeypatch):
    # A machine that becomes slower and slower: only neighbours can be compared.
    times = iter([1e-9 * (1_000 * turn + part) for turn in range(6) for part in (0, 30)])
    monkeypatch.setattr(differences, "cpu_seconds", lambda _action: next(times))
    assert beyond(print, {"a": print, "b": print}, 3)["b"].median == pytest.approx(30)


def test_a_row_without_a_number_is_not_in_the_prose():
    rows = Rows({"columns": ["ISA", "what", "ns"], "rows": [["i386", "x", 3], ["x86-64", "x", NOISE]]})
    assert (rows.values("ns", "x"), rows.isas("ns", "x"), rows.isas()) == ([3], "i386", "i386 and x86-64")


@pytest.mark.parametrize("isa", ISAS)
def test_both_machines_do_the_same_work_in_a_turn(isa, monkeypatch):
    # So FBT, which has no guest code of its own on the host's path, adds no instruction to the calls of a turn.
    assert _added(isa, "fbt::sched_relinquish:entry { @ = count(); }", monkeypatch) < 1


def test_the_guest_instructions_of_a_firing_are_counted(monkeypatch):
    assert _added("riscv64", "sched:::surrender { @ = count(); }", monkeypatch) > 5


def _added(isa, program, monkeypatch):
    monkeypatch.setattr(differences, "_WARM", 5_000_000_000)
    monkeypatch.setattr(differences, "_SLICE", 3_000_000_000)
    make = partial(machine, ISAS[isa], SDT_GENERATION, 100_000_000, TrapPath.HOST)
    return firing(make, "", program, Scale(smallest=True)).instructions
