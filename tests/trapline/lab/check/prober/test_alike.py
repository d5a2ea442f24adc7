"""Sites with the same instruction have the same results together as each by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.displaced.decision import Code, Emulated, OutOfLine
from emu.engine.memory.pages import PAGE
from emu.isa import ISAS
from emu.native import available
from providers import fasttrap
from tests.trapline.lab.check.native.test_batch import HARMLESS, STORES, TWICE, checker, program
from tests.trapline.lab.check.test_site_check import SITES
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.alike import Group, groups, ordered, parts
from trapline.lab.check.prober.probers import PidProber, Prober, UprobeProber
from trapline.lab.check.site.compare import ELSEWHERE, Outcome

native = pytest.mark.skipif(not available(), reason="needs llvmlite")


@native
@pytest.mark.parametrize("make", [PidProber, UprobeProber])
@pytest.mark.parametrize("isa", SITES)
def test_sites_together_have_the_results_of_each(isa: str, make: type[Prober]) -> None:
    codes = [STORES[isa], TWICE[isa][0]]
    code, sites = program(ISAS[isa], 6 * codes)
    together, alone = (checker(ISAS[isa], code, make, Rules(), native=True) for _ in range(2))
    for group in (sites[0::2], sites[1::2]):
        assert together.check_all(group) == [alone.check(site) for site in group]
    assert together.executed.total() == alone.executed.total()
    assert together.executed[ELSEWHERE] > 0.5 * together.executed.total()


@native
def test_sites_that_differ_are_left_to_the_check_of_each() -> None:
    isa = ISAS["x86_64"]
    right = fasttrap.PORTS["x86_64"]

    def treat(code, fidelity):  # type: ignore[no-untyped-def]
        found = right.treat(code, fidelity)
        assert isinstance(found, Emulated)
        return replace(found, plan=replace(found.plan, operations=found.plan.operations[-1:]))

    code, sites = program(isa, 3 * [STORES["x86_64"]])
    one = checker(isa, code, PidProber, Rules(pid=replace(right, treat=treat)), native=True)
    trial = one._trial(Group(sites, treat(Code(sites[0].code, sites[0].address), Rules().fidelity)))
    one._try_all([trial])
    assert trial.undecided
    assert not one.executed.total()
    assert [found.outcome for found in one._results(trial)] == [Outcome.DIVERGED] * len(sites)


@native
def test_rules_under_test_are_tried_at_each_site() -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, [HARMLESS["x86_64"]])

    def decision(rules: Rules, *, native: bool) -> object:
        return checker(isa, code, PidProber, rules, native=native).decide(sites[0])

    assert decision(Rules(), native=True) is not None
    assert decision(Rules(pid=fasttrap.PORTS["x86_64"]), native=True) is None
    assert decision(Rules(), native=False) is None


def copies(*addresses: int, code: str = "89d8") -> list[CheckSite]:
    """Return sites of instructions of two bytes, with others behind them."""
    return [CheckSite(address, bytes.fromhex(code) + address.to_bytes(8, "little")) for address in addresses]


def test_only_the_same_instruction_inside_a_page_is_alike() -> None:
    rule = fasttrap.PORTS["x86_64"].treat(Code(bytes.fromhex("89d8"), 0x1000), Rules().fidelity).rule
    move = OutOfLine(rule, 2, bytes.fromhex("89d8"))
    sites = [*copies(0x1000, 0x1002, 2 * PAGE - 1, 0x3000), *copies(0x4000, code="89d9")]
    found = list(groups(sites, lambda _site: move))
    assert [[site.address for site in group.sites] for group in found] == [
        [0x1000, 0x1002],
        [0x1FFF],
        [0x3000],
        [0x4000],
    ]
    assert [len(group.sites) for group in groups(sites, lambda _site: None)] == [1] * len(sites)
    other = {0x1002: replace(move, scratch="rax")}
    assert [len(group.sites) for group in groups(sites[:2], lambda site: other.get(site.address, move))] == [1, 1]


@pytest.mark.parametrize(("count", "wanted"), [(1, [1]), (2, [1, 1]), (3, [2, 1]), (9, [8, 1])])
def test_the_last_of_many_is_tried_where_it_is(count: int, wanted: list[int]) -> None:
    sites = copies(*range(0x1000, 0x1000 + 2 * count, 2))
    assert [len(group.sites) for group in parts([Group(sites, None)])] == wanted


def test_equal_instructions_follow_each_other() -> None:
    sites = [*copies(0x5000, 0x1000), *copies(0x3000, code="55c3")]
    assert [site.address for site in ordered(sites)] == [0x3000, 0x1000, 0x5000]
