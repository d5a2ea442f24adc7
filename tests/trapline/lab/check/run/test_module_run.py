"""Functions of Linux modules, called plain and with all sites patched.

An object file stands for a module: a section that it has is taken for the one that every module
has.
"""

from dataclasses import replace

import pytest

from emu.displaced.plans import Plan, Set
from emu.guest.kernel.boot.images import built
from emu.guest.linux_kernel.files import module_file
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from providers.linux_kernel import text
from providers.linux_kernel.sites import treat
from trapline.commands.check import Wanted, options_of
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.run.runs import run_check


@pytest.fixture(params=list(BOARDS))
def spec(monkeypatch, request):
    monkeypatch.setattr(module_file, "_MARK", ".text")
    (run,) = Wanted.of(options_of([str(built(ISAS[request.param]) / "objects" / "links-pic.o")])).spec().runs
    return run


def test_functions_do_the_same_with_probes(spec):
    result = run_check(spec, Rules())
    assert result.same
    assert result.fired >= 3  # each call returns
    assert result.status == "3 calls returned, 0 calls faulted, 0 calls did not end"
    assert not spec.recorded


def test_a_wrong_plan_is_found(spec, monkeypatch):
    def wrong(isa, code, address):
        found, result = treat(isa, code, address), isa.calling.results[0]
        return found and replace(found, plan=Plan((*found.plan.operations, Set(result, result, 1))))

    monkeypatch.setattr(text, "treat", wrong)
    result = run_check(spec, Rules())
    assert not result.same
    assert result.differences[0].startswith("output from byte")
    assert result.culprit.startswith("compute")
