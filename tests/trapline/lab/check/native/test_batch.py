"""Machine code has the same results as Python in each state, and tries nearly all states itself."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from emu.displaced.decision import Emulated
from emu.displaced.plans import Branch, Plan, Set, SetVector, Store
from emu.engine.memory.pages import PAGE
from emu.isa import ISAS
from emu.isa.base import Isa
from emu.native import available
from providers import fasttrap, uprobes
from tests.trapline.lab.check.test_site_check import ADDRESS, NEAR, SITES
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import POOL, States, chosen
from trapline.lab.check.prober.probers import PidProber, Prober, UprobeProber
from trapline.lab.check.site.compare import MACHINE_CODE, PYTHON, Outcome, SiteChecker, SiteResult

pytestmark = pytest.mark.skipif(not available(), reason="needs llvmlite")

STATES = 42
# Bytes of code that each instruction has for itself.
ROOM = 64
# An instruction that every ISA's pid provider emulates, and that faults in no state.
HARMLESS = {"x86_64": "90", "aarch64": "80000010", "riscv64": "17050000", "i386": "90"}
# One that stores at the stack pointer.
STORES = {"x86_64": "55", "aarch64": "fd7bbfa9", "riscv64": "2334a100", "i386": "55"}
# Where the provider emulates it.
EMULATED_STORES = {isa: code for isa, code in STORES.items() if isa != "riscv64"}
# Instructions that change memory by what is in it: a second attempt must find it as it was.
TWICE = {
    "x86_64": ["4801442408", "480105f0ff0f00", "488f0424"],  # add [rsp+8], rax; add [rip+...], rax; pop [rsp]
    "aarch64": ["e10300f8", "e1ff9f08", "ffff9f88"],  # stur x1, [sp]; stlrb and stlr, to [sp]
    "riscv64": ["2f35b100", "2f30b102", "2fb0b108"],  # amoadd.w and .d, amoswap.d, to [sp]
    "i386": ["01442408", "010500100100", "8f0424"],  # add [esp+8], eax; add [0x11000], eax; pop [esp]
}

# One that the CPU refuses to execute.
EXCEPTIONS = {"x86_64": "48f7f1", "aarch64": "00000000", "riscv64": "ffffffff", "i386": "f7f1"}  # div by ecx, and udf
# String instructions that repeat: stos, scas, movs, cmps and lods; stos with addresses of fewer bits.
REPEATED = {
    "x86_64": ["f348ab", "f2ae", "f3a4", "f3a6", "f3ac", "67f3ab"],
    "i386": ["f3ab", "f2ae", "f3a4", "f3a6", "f3ac", "67f3ab"],
}

# A branch to the next page.
FAR_BRANCHES = {"x86_64": "e9fb0f0000", "aarch64": "00040014", "riscv64": "6f100000", "i386": "e9fb0f0000"}


def program(isa: Isa, codes: list[str]) -> tuple[list[Stretch], list[CheckSite]]:
    """Return the code of some instructions, apart from each other, and their sites."""
    filler = isa.traps.breakpoints[0]
    data = b"".join((bytes.fromhex(code) + filler * ROOM)[:ROOM] for code in codes)
    places = range(0, len(data), ROOM)
    return [Stretch(ADDRESS, data + filler * ROOM)], [CheckSite(ADDRESS + at, data[at : at + 16]) for at in places]


def checker(isa: Isa, code: list[Stretch], make: type[Prober], rules: Rules, **options: Any) -> SiteChecker:
    """Return a checker of a program."""
    plain, patched = (TrialCpu(isa, code, stepping=stepping) for stepping in (True, False))
    return SiteChecker(plain, patched, make(patched, NEAR, rules), STATES, **options)  # type: ignore[call-arg]


def at(site: CheckSite, numbers: list[int]) -> array[int]:
    """Return where each of some states is tried: at one site."""
    return array("Q", [site.address]) * len(numbers)


def both(isa: Isa, codes: list[str], make: type[Prober], rules: Rules | None = None) -> Iterator[list[SiteResult]]:
    """Yield what machine code finds, and what Python finds."""
    code, sites = program(isa, codes)
    for native in (True, False):
        one = checker(isa, code, make, rules or Rules(), native=native)
        yield [one.check(site) for site in sites]


@pytest.mark.parametrize("make", [PidProber, UprobeProber])
@pytest.mark.parametrize("isa", SITES)
def test_both_find_the_same(isa: str, make: type[Prober]) -> None:
    natively, by_python = both(ISAS[isa], [*SITES[isa].values(), *TWICE[isa]], make)
    assert natively == by_python
    assert any(one.outcome is Outcome.AGREED for one in natively)


def wrong_pc(isa: Isa, plan: Plan) -> Plan:
    """Return a plan that continues four bytes too far."""
    pc = isa.registers.pc
    return Plan((*plan.operations[:-1], *(_further(one, pc) for one in plan.operations[-1:])))


def _further(operation: Any, pc: str) -> Any:
    if isinstance(operation, Set) and operation.target == pc:
        return operation._replace(offset=operation.offset + 4)
    if isinstance(operation, Branch):
        return operation._replace(taken=operation.taken + 4)
    return operation


def stores_too_much(isa: Isa, plan: Plan) -> Plan:
    """Return a plan that writes memory which is not the instruction's to write."""
    sp = isa.registers.sp
    return Plan((Store(sp, sp, 16, isa.word), *plan.operations))


def forgets(_: Isa, plan: Plan) -> Plan:
    """Return a plan without its first store: the memory alone differs."""
    stores = [one for one in plan.operations if isinstance(one, Store)]
    return Plan(tuple(one for one in plan.operations if one is not stores[0]))


def faults_elsewhere(_: Isa, plan: Plan) -> Plan:
    """Return a plan whose first store is a page away: of the pages that refuse it, two are alike."""
    found = [*plan.operations]
    place = next(number for number, one in enumerate(found) if isinstance(one, Store))
    found[place] = found[place]._replace(offset=found[place].offset + 8 * PAGE)  # type: ignore[union-attr]
    return Plan(tuple(found))


def half_a_vector(_: Isa, plan: Plan) -> Plan:
    """Return a plan that clears the upper half of the vector register that it loads."""
    return Plan(tuple(one._replace(high="") if isinstance(one, SetVector) else one for one in plan.operations))


# ldr q0, from the instruction's own page.
VECTOR_LOADS = {"aarch64": "0001009c"}
WRONG = [
    (wrong, isa, code)
    for wrong, codes in (
        (wrong_pc, HARMLESS),
        (stores_too_much, HARMLESS),
        (forgets, EMULATED_STORES),
        (faults_elsewhere, EMULATED_STORES),
        (half_a_vector, VECTOR_LOADS),
    )
    for isa, code in codes.items()
]


@pytest.mark.parametrize(("wrong", "isa", "code"), WRONG, ids=lambda one: getattr(one, "__name__", one))
def test_a_wrong_plan_is_found(isa: str, wrong: Any, code: str) -> None:
    right = fasttrap.PORTS[isa]

    def treat(displaced: Any, fidelity: Any) -> Any:
        found = right.treat(displaced, fidelity)
        assert isinstance(found, Emulated)
        return replace(found, plan=wrong(ISAS[isa], found.plan))

    rules = Rules(pid=replace(right, treat=treat))
    natively, by_python = both(ISAS[isa], [code], PidProber, rules)
    assert natively == by_python
    assert [one.outcome for one in natively] == [Outcome.DIVERGED]


@pytest.mark.parametrize("isa", SITES)
def test_python_is_asked_for_little(isa: str) -> None:
    code, sites = program(ISAS[isa], [HARMLESS[isa], STORES[isa]])
    one = checker(ISAS[isa], code, PidProber, Rules(), native=True)
    for site in sites:
        one.check(site)
    assert one.executed.total() == len(sites) * STATES
    assert one.executed[PYTHON] <= 0.1 * one.executed[MACHINE_CODE]


# A load from where the stack pointer points, which every provider runs in a copy.
LOADS = {"x86_64": "488b0424", "aarch64": "e00340f9", "riscv64": "03350100", "i386": "8b0424"}
PUT_BACK_BY = {PidProber: fasttrap.out_of_line.Steps, UprobeProber: uprobes.steps.Steps}


@pytest.mark.parametrize("make", PUT_BACK_BY)
@pytest.mark.parametrize("isa", LOADS)
def test_copies_that_fault_are_left_to_machine_code(isa: str, make: type[Prober]) -> None:
    code, sites = program(ISAS[isa], [LOADS[isa]])
    one = checker(ISAS[isa], code, make, Rules(), native=True)
    one.check(sites[0])  # the pages of copies are mapped now
    one.executed.clear()
    assert one.check(sites[0]).outcome is Outcome.AGREED
    assert not one.executed[PYTHON]


@pytest.mark.parametrize("make", PUT_BACK_BY)
@pytest.mark.parametrize(("isa", "code"), [*LOADS.items(), *EXCEPTIONS.items()])
def test_a_thread_that_is_not_put_back_after_a_fault_is_found(
    isa: str, code: str, make: type[Prober], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PUT_BACK_BY[make], "faulted", lambda _self, _thread, info: info)
    stretches, sites = program(ISAS[isa], [code])
    one = checker(ISAS[isa], stretches, make, Rules(), native=True)
    assert one.check(sites[0]).outcome is Outcome.DIVERGED


@pytest.mark.parametrize("make", PUT_BACK_BY)
@pytest.mark.parametrize("isa", EXCEPTIONS)
def test_an_exception_that_ends_an_instruction_is_left_to_machine_code(
    isa: str, make: type[Prober], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, sites = program(ISAS[isa], [EXCEPTIONS[isa]])
    one = checker(ISAS[isa], code, make, Rules(), native=True)
    one.check(sites[0])
    one.executed.clear()
    traps, taken = one._patched.engine.handlers.taker, []
    monkeypatch.setattr(traps, "trap", lambda number, trap=traps.trap: taken.append(number) or trap(number))
    assert one.check(sites[0]).outcome is Outcome.AGREED
    # RISC-V's illegal instruction ends the run when Python meets it first, in each way.
    assert one.executed[PYTHON] <= 2
    assert len(taken) < STATES / 4


@pytest.mark.parametrize("make", PUT_BACK_BY)
@pytest.mark.parametrize(("isa", "code"), [(isa, code) for isa, codes in REPEATED.items() for code in codes])
def test_repeated_string_instructions_are_left_to_machine_code(isa: str, code: str, make: type[Prober]) -> None:
    natively, by_python = both(ISAS[isa], [code], make)
    assert natively == by_python
    assert natively[0].outcome is Outcome.AGREED
    stretches, sites = program(ISAS[isa], [code])
    one = checker(ISAS[isa], stretches, make, Rules(), native=True)
    one.check(sites[0])
    assert not one.executed[PYTHON]


@pytest.mark.parametrize("isa", EMULATED_STORES)
def test_a_plan_that_a_page_refuses_is_left_to_machine_code(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, sites = program(ISAS[isa], [EMULATED_STORES[isa]])
    one = checker(ISAS[isa], code, PidProber, Rules(), native=True)
    refused: list[int] = []
    kernel = one._patched.kernel
    fault = kernel.raise_bad_address
    monkeypatch.setattr(kernel, "raise_bad_address", lambda address: refused.append(address) or fault(address))
    numbers = [number for number in range(POOL) if States(isa)[number].kind == "sp in a read-only page"]
    with one._prober.look(sites[0]).ways[0].in_place():  # type: ignore[union-attr]
        assert list(one._batches.left_over(at(sites[0], numbers), numbers)) == []  # type: ignore[union-attr]
    assert len(numbers) > 10
    assert len(refused) <= 1  # the first hit is served by Python


def test_a_page_for_copies_that_is_mapped_meanwhile_is_no_reason_for_python() -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, [LOADS["x86_64"]])
    one = checker(isa, code, PidProber, Rules(), native=True)
    one.check(sites[0])
    assert not one.executed[PYTHON]


def test_arguments_on_a_stack_that_is_not_mapped_are_zero_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    isa = ISAS["i386"]
    code, sites = program(isa, [HARMLESS["i386"]])
    one = checker(isa, code, PidProber, Rules(), native=True)
    numbers = [number for number in range(POOL) if States("i386")[number].kind == "sp in an unmapped page"]
    memory, loads = one._patched.engine.memory, []
    load = memory.load
    monkeypatch.setattr(memory, "load", lambda address, size: loads.append(address) or load(address, size))
    with one._prober.look(sites[0]).ways[0].in_place():  # type: ignore[union-attr]
        assert list(one._batches.left_over(at(sites[0], numbers), numbers)) == []  # type: ignore[union-attr]
    assert len(loads) <= 5  # the first hit is served by Python


def test_without_room_for_the_areas_python_tries_the_states_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, [HARMLESS["x86_64"]])
    batches = checker(isa, code, PidProber, Rules(), native=True)._batches
    assert batches is not None
    monkeypatch.setattr(batches, "_show_areas", lambda: False)
    numbers = [*range(5)]
    assert list(batches.left_over(at(sites[0], numbers), numbers)) == numbers
    assert list(batches.left_over(at(sites[0], numbers), numbers, following=lambda place: place + 3)) == [0, 3]


@pytest.mark.parametrize("isa", SITES)
def test_states_beyond_the_pool_are_made_of_two(isa: str) -> None:
    code, sites = program(ISAS[isa], [HARMLESS[isa]])
    one = checker(ISAS[isa], code, PidProber, Rules(), native=True)
    plain, number = one._plain, 7 * POOL + 5
    one._prober.look(sites[0]).ways[0].enter()
    assert list(one._batches.left_over(at(sites[0], [3, number]), [3, number])) == []
    natively = plain.general(), plain.flags(), plain.vectors()
    plain.load(States(isa)[number])
    plain.execute(sites[0].address)
    assert natively == (plain.general(), plain.flags(), plain.vectors())


def test_a_site_meets_as_many_states_as_are_asked_for() -> None:
    numbers = chosen(0x1234, 3 * POOL + 1)
    assert len(set(numbers)) == len(numbers)
    states = States("x86_64")
    assert len({(tuple(one.registers.items()), one.flags, one.vectors) for one in map(states.__getitem__, numbers)}) > (
        2.9 * POOL
    )


def test_an_exception_of_a_rule_is_raised_as_from_a_run() -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, ["90"])
    one = checker(isa, code, PidProber, Rules(), native=True)

    def fails(_address: int, _frame: object, _extra: int) -> int:
        raise ZeroDivisionError("a rule's mistake")

    one._patched.kernel.traps.add(fails)
    with pytest.raises(ZeroDivisionError, match="a rule's mistake"):
        one.check(sites[0])


def test_without_machine_code_python_tries_all() -> None:
    isa = ISAS["x86_64"]
    code, sites = program(isa, ["90"])
    one = checker(isa, code, PidProber, Rules(), native=False)
    one.check(sites[0])
    assert one.executed == {PYTHON: STATES, MACHINE_CODE: 0}


@pytest.mark.parametrize("isa_name", FAR_BRANCHES)
def test_a_branch_to_a_block_that_python_has_executed_is_tried_by_machine_code(isa_name: str) -> None:
    isa = ISAS[isa_name]
    code, far = bytes.fromhex(FAR_BRANCHES[isa_name]), bytes.fromhex(HARMLESS[isa_name])
    plain, patched = (
        TrialCpu(isa, [Stretch(ADDRESS, code.ljust(PAGE, b"\0") + far.ljust(ROOM, b"\0"))], stepping=stepping)
        for stepping in (True, False)
    )
    one = SiteChecker(plain, patched, PidProber(patched, NEAR, Rules()), STATES, native=True)
    plain.load_numbered(States(isa_name), 0)
    plain.execute(ADDRESS + PAGE)
    found = one.check(CheckSite(ADDRESS, code))
    assert found.outcome is Outcome.AGREED
    assert one.executed[PYTHON] <= 1
    assert one.executed[MACHINE_CODE] >= STATES - 1
