"""Scenarios of processes: one forks, or leaves a function, while its probe comes and goes."""

from dataclasses import replace

import pytest

from emu.isa import ISAS
from tests.support.races import kind_of
from trapline.lab.race.methods import FORK, METHODS, RETURN, Own
from trapline.lab.race.model import Model, Race
from trapline.lab.race.patch import RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.processor import Processor
from trapline.lab.race.search import explore, replay, search


@pytest.fixture(scope="module", params=ISAS)
def fib(request):
    """The entry of a function of a program, for each provider."""
    file = f"testbins/built/{request.param}/linux/zoo"
    patches = {name: find(ISAS[request.param], f"{name}:{file}:fib:0") for name in ("pid", "uprobe")}
    return {name: (patch, Processor(patch)) for name, patch in patches.items()}


def kind(patch, processor, method, scenario, **how):
    return kind_of(search(Model(Race(patch, method, scenario), processor), **how))


@pytest.mark.parametrize(("provider", "scenario"), [("pid", FORK), ("uprobe", FORK), ("uprobe", RETURN)])
def test_our_own_method_and_uprobes_hold(fib, provider, scenario):
    assert kind(*fib[provider], "stop-machine", scenario) == "holds"
    assert kind(*fib[provider], "new-page", scenario) == "holds"
    assert kind(*fib[provider], "new-page", scenario, reduce=False) == "holds"


def test_a_child_keeps_a_breakpoint_that_nobody_knows_unless_forks_are_excluded(fib):
    patch, processor = fib["pid"]
    expected = "unpredictable" if patch.isa.name == "aarch64" else "unclaimed"
    assert kind(patch, processor, "write-sync", FORK) == expected


def test_a_child_that_is_not_listed_misses_the_probe(fib):
    patch, processor = fib["uprobe"]
    expected = "unpredictable" if patch.isa.name == "aarch64" else "missed"
    assert kind(patch, processor, "write-sync", FORK) == expected


def test_a_child_reads_its_own_page():
    patch = find(ISAS["x86_64"], "pid:testbins/built/x86_64/linux/zoo:fib:0")
    failed = explore(Race(patch, "write-sync", FORK))
    texts = [move.text for move in failed.found.trace]
    assert any("the child's memory is a copy, cc" in text for text in texts)
    assert any("has no breakpoint to remove" in text for text in texts)
    assert replay(failed.line)[1] == failed.found.trace


def test_the_trampoline_must_stay_for_functions_that_return_to_it(fib):
    patch, processor = fib["uprobe"]
    hasty = Own("hasty", replace(METHODS["new-page"], keeps=False), "")
    found = search(Model(Race(patch, hasty.name, RETURN, own=hasty), processor))
    assert found.failure.kind == "unclaimed"
    assert found.trace[-1].text == "takes the breakpoint of the trampoline"


@pytest.mark.parametrize(
    ("name", "scenario", "words"),
    [
        ("fbt::malloc:entry", FORK, "only the code of processes"),
        ("fbt::malloc:entry", RETURN, "patches at the return itself"),
        ("pid:testbins/built/x86_64/linux/zoo:fib:0", RETURN, "only uprobes"),
    ],
)
def test_a_scenario_that_a_patch_cannot_have_is_one_message(name, scenario, words):
    with pytest.raises(RaceError, match=words):
        explore(Race(find(ISAS["x86_64"], name), "stop-machine", scenario))
