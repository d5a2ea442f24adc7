"""Every benchmark runs on every ISA: once, in its smallest size.  The figures have no meaning here."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import benchmarks
from benchmarks import objects, provenance
from benchmarks.__main__ import BENCHMARKS
from benchmarks.figures import Scale
from emu.isa import ISAS
from trapline.lab.objects.build import BuildError

# These are equal on all ISAs, or only run commands that other tests run on each, so one ISA is enough.
ONCE = {"language": "i386", "models": "x86_64", "startup": "riscv64"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_on_every_isa(name, isa):
    if ONCE.get(name, isa) != isa:
        pytest.skip("it does not depend on the ISA")
    figures = BENCHMARKS[name]([ISAS[isa]], Scale(smallest=True))
    assert figures.rows or figures.left_out
    assert all(len(row) == len(figures.columns) for row in figures.rows)


def test_the_long_checks_can_be_started():
    # They run for hours, so no test runs them whole; what they import can be moved meanwhile.
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name != "__main__":
            importlib.import_module(f"benchmarks.{module.name}")


def test_the_time_of_more_states_is_told():
    assert provenance.projection(1_000, 0.1).endswith("10,000 a second; at that rate 10^8: 2.8 h, 10^9: 27.8 h")
    assert "no rate" in provenance.projection(0, 0.1)
    assert {"date", "source", "python", "unicorn", "capstone", "seeds"} == set(provenance.provenance("7"))


def test_our_own_objects_are_checked_like_those_of_kernels(monkeypatch, capsys):
    monkeypatch.setattr(objects, "_FUNCTIONS", "sys_access")
    row = objects.totals("illumos-fbt", "testbins", None, ISAS["i386"])
    assert (row["counts"]["functions"], row["failures"], dict(row["differences"])) == (1, 0, {})
    with pytest.raises(BuildError, match="no objects of testbins"):
        objects.totals("illumos-fbt", "testbins", None, ISAS["riscv64"])
    assert objects.main(["fbt:14"]) == 2
    assert "name the sources: fbt:VERSION=FOLDER" in capsys.readouterr().err
