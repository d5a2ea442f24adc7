"""Sites that have their probes at the same time have the results of each by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emu.isa import ISAS
from emu.isa.linux_signals import SignalInfo
from emu.native import available
from providers.fasttrap.out_of_line import Steps
from tests.trapline.lab.check.native.test_batch import (
    EXCEPTIONS,
    HARMLESS,
    LOADS,
    PUT_BACK_BY,
    STORES,
    TWICE,
    checker,
    program,
)
from tests.trapline.lab.check.test_site_check import SITES
from trapline.lab.check.cpu.cpu import Stretch
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.alike import Group
from trapline.lab.check.prober.probers import PidProber, Prober, UprobeProber
from trapline.lab.check.site.compare import PYTHON, Outcome
from trapline.lab.check.site.together import AT_ONCE, Round, Share, Trial, batches, overlapping

native = pytest.mark.skipif(not available(), reason="needs llvmlite")

# Instructions that raise an exception other than a page fault.
UNDEFINED = {"x86_64": "0f0b", "aarch64": "00000000", "riscv64": "ffffffff", "i386": "0f0b"}


@native
@pytest.mark.parametrize("make", [PidProber, UprobeProber])
@pytest.mark.parametrize("isa", SITES)
def test_each_site_has_its_own_result(isa: str, make: type[Prober]) -> None:
    code, sites = program(ISAS[isa], [*SITES[isa].values(), *TWICE[isa], UNDEFINED[isa], *SITES[isa].values()])
    together, alone = (checker(ISAS[isa], code, make, Rules(), native=True) for _ in range(2))
    for _ in range(2):
        assert together.check_all(sites) == [alone.check(site) for site in sites]
        assert together.executed.total() == alone.executed.total()
    for cpu in (together._plain, together._patched):
        assert cpu.space.peek(sites[0].address, len(code[0].data)) == code[0].data


@native
@pytest.mark.parametrize("make", [PidProber, UprobeProber])
@pytest.mark.parametrize("isa", SITES)
def test_machine_code_goes_through_the_states_of_all(isa: str, make: type[Prober]) -> None:
    code, sites = program(ISAS[isa], [HARMLESS[isa], STORES[isa], LOADS[isa]])
    one = checker(ISAS[isa], code, make, Rules(), native=True)
    one.check_all(sites)
    one.executed.clear()
    calls = 0
    left_over = one._batches.left_over  # type: ignore[union-attr]

    def counted(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        return left_over(*arguments, **options)  # type: ignore[arg-type]

    one._batches.left_over = counted  # type: ignore[union-attr, method-assign, assignment]
    assert all(found.outcome is Outcome.AGREED for found in one.check_all(sites))
    assert not one.executed[PYTHON]
    assert calls == max(len(one._prober.look(site).ways) for site in sites)  # type: ignore[union-attr]


@native
@pytest.mark.parametrize("isa", SITES)
def test_a_copy_that_is_not_put_back_after_a_fault_is_found(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps, "faulted", lambda _self, _thread, info: info)
    code, sites = program(ISAS[isa], [HARMLESS[isa], LOADS[isa], HARMLESS[isa]])
    one = checker(ISAS[isa], code, PidProber, Rules(), native=True)
    assert [found.outcome for found in one.check_all(sites)] == [Outcome.AGREED, Outcome.DIVERGED, Outcome.AGREED]


@native
@pytest.mark.parametrize("make", PUT_BACK_BY)
@pytest.mark.parametrize(("isa", "twice"), [*EXCEPTIONS.items(), *LOADS.items()])
def test_a_wrong_signal_of_one_of_two_sites_is_found(
    isa: str, twice: str, make: type[Prober], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code has learned at the first site how the fault of a copy is served."""
    code, sites = program(ISAS[isa], [twice, twice])
    right = PUT_BACK_BY[make].faulted

    def wrong(self: Any, thread: Any, info: SignalInfo) -> SignalInfo:
        found: SignalInfo = right(self, thread, info)
        return replace(found, code=77) if one._patched.engine.pc == sites[1].address else found

    monkeypatch.setattr(PUT_BACK_BY[make], "faulted", wrong)
    one = checker(ISAS[isa], code, make, Rules(), native=True)
    assert [found.outcome for found in one.check_all(sites)] == [Outcome.AGREED, Outcome.DIVERGED]


@native
@pytest.mark.parametrize("make", [PidProber, UprobeProber])
def test_a_site_that_reads_the_code_of_another_is_tried_by_itself(make: type[Prober]) -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, ["8a053a000000", "90"])  # mov al, [rip + 58]: the nop
    assert sites[0].address + 6 + 58 == sites[1].address
    together, alone = (checker(isa, code, make, Rules(), native=True) for _ in range(2))
    trials = [together._trial(Group([site], together.decide(site))) for site in sites]
    together._try_all(trials)
    assert [trial.undecided for trial in trials] == [True, False]
    assert together.check_all(sites) == [alone.check(site) for site in sites]
    assert together.executed.total() == alone.executed.total()


@native
@pytest.mark.parametrize("make", [PidProber, UprobeProber])
def test_instructions_that_overlap_have_no_probes_at_the_same_time(make: type[Prober]) -> None:
    isa = ISAS["x86_64"]
    data = bytes.fromhex("b8909090c3") + bytes(64)  # mov eax, 0xc3909090, and the nops in it
    sites = [CheckSite(0x40_0000 + at, data[at : at + 16]) for at in range(4)]
    stretches = [Stretch(0x40_0000, data)]
    together, alone = (checker(isa, stretches, make, Rules(), native=True) for _ in range(2))
    assert together.check_all(sites) == [alone.check(site) for site in sites]


def trial(address: int, length: int) -> Trial:
    """Return the trial of an instruction."""
    return Trial([CheckSite(address, b"")], length, None)


def test_the_states_of_an_undecided_site_are_skipped() -> None:
    one, other = trial(0x1000, 4), trial(0x1004, 4)
    shares = [Share(one, one.sites[0], [[1, 2]]), Share(one, one.sites[0], [[3]]), Share(other, other.sites[0], [[4]])]
    states = Round(shares, 0)
    assert [states.following(place) for place in range(4)] == [1, 2, 3, 4]
    one.undecided = True
    assert [states.following(place) for place in range(4)] == [3, 3, 3, 4]


def test_the_instruction_that_begins_in_another_one_is_found() -> None:
    trials = [
        trial(0x1010, 4),
        trial(0x1004, 2),
        trial(0x1000, 4),
        trial(0x1002, 1),
        trial(0x1006, 8),
        trial(0x100F, 1),
    ]
    assert [one.address for one in overlapping(trials)] == [0x1002]
    assert [one.address for one in overlapping([trial(0x1000, 8), trial(0x1001, 1), trial(0x1004, 1)])] == [
        0x1001,
        0x1004,
    ]


def test_a_state_belongs_to_the_site_that_it_was_chosen_for() -> None:
    one, other = trial(0x1000, 1), trial(0x2000, 1)
    shares = [
        Share(one, one.sites[0], [[7, 8], [9]]),
        Share(one, CheckSite(0x1500, b""), [[], [5]]),
        Share(other, other.sites[0], [[3], [2, 1]]),
    ]
    first, second = Round(shares, 0), Round(shares, 1)
    assert (first.numbers, list(first.sites)) == ([7, 8, 3], [0x1000, 0x1000, 0x2000])
    assert [first.share(place) for place in range(3)] == [shares[0], shares[0], shares[2]]
    assert (second.numbers, list(second.sites)) == ([9, 5, 2, 1], [0x1000, 0x1000, 0x2000, 0x2000])
    assert [second.share(place) for place in range(4)] == [shares[0], shares[1], shares[2], shares[2]]
    assert [share.states for share in shares] == [3, 1, 3]


def test_only_so_many_have_their_probes_at_once() -> None:
    trials = [trial(address, 1) for address in range(2 * AT_ONCE + 1)]
    found = list(batches(trials))
    assert [len(batch) for batch in found] == [AT_ONCE, AT_ONCE, 1]
    assert [one for batch in found for one in batch] == trials
