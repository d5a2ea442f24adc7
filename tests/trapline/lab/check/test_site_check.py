"""Sites in awkward states: correct rules agree, wrong ones are found, and the state is reduced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.displaced.decision import Emulated
from emu.displaced.plans import Plan, Set
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.isa import ISAS
from emu.isa.base import Isa
from providers.fidelity import Fidelity
from tests.trapline.lab.check import rules_under_test
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import POOL, State, chosen, general_registers, pool
from trapline.lab.check.prober.probers import PidProber, Prober, UprobeProber
from trapline.lab.check.run import ended as ended_module
from trapline.lab.check.run import guest_runs
from trapline.lab.check.run.ended import Ended
from trapline.lab.check.run.recorded import BorrowedSpace, BorrowingCpu, RecordedChecker, check_recorded
from trapline.lab.check.run.runs import RunSpec, run_check
from trapline.lab.check.site.compare import Outcome, SiteChecker, SiteResult
from trapline.lab.check.site.kernel_path import KernelPathChecker
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import find_file

ADDRESS = 0x40_0000
NEAR = 0x100_0000
STATES = 28

# Instructions that need special care, by ISA.
SITES = {
    "x86_64": {
        "push rbp": "55",
        "ret": "c3",
        "call rel32": "e810000000",
        "jne rel8": "7510",
        "mov eax, [rip+0x10000]": "8b0500000100",
        "cmpxchg [rip+0x10000], ecx": "0fb10d00000100",
        "rep movsb": "f3a4",
        "syscall": "0f05",
        "div rcx": "48f7f1",
        "pushfq": "9c",
        "addsd xmm0, [rsp]": "f20f580424",
        "jmp [rax+rcx*8]": "ff24c8",
        "leave": "c9",
        "hlt": "f4",
        "ud2": "0f0b",
    },
    "aarch64": {
        "stp x29, x30, [sp, #-16]!": "fd7bbfa9",
        "ret": "c0035fd6",
        "bl": "04000094",
        "b.ne": "81000054",
        "cbz w0": "80000034",
        "tbnz x0, #40": "80004037",
        "adr x0": "80000010",
        "ldr x0, literal": "40000058",
        "ldp x0, x1, [x2]": "400440a9",
        "add v0.4s": "2084214e",
        "svc": "010000d4",
        "mrs x0, nzcv": "00423bd5",
        "ldr x0, [x1, #1]!": "201c40f8",
        "udf": "00000000",
    },
    "riscv64": {
        "c.addi sp, -16": "4111",
        "c.jr ra": "8280",
        "jal ra": "ef000001",
        "beq a0, a1": "6308b500",
        "auipc a0": "17050000",
        "c.bnez a0": "01e9",
        "ld a0, 0(a1)": "03b50500",
        "sd a0, 8(sp)": "2334a100",
        "fadd.d": "53050500",
        "ecall": "73000000",
        "div a0, a0, a1": "3345b502",
        "jalr ra, 16(a0)": "e7000501",
        "amoadd.d a0, a1, (a2)": "2f35b600",
        "illegal": "ffffffff",
    },
    "i386": {
        "push ebp": "55",
        "ret": "c3",
        "call rel32": "e810000000",
        "jne rel8": "7510",
        "mov eax, [0x10000]": "a100000100",
        "call [ebp-56], which writes what it may only read": "ff55c8",
        "rep movsb": "f3a4",
        "int 0x80": "cd80",
        "div ecx": "f7f1",
        "pushf": "9c",
        "pusha": "60",
        "enter": "c8100000",
        "addsd xmm0, [esp]": "f20f580424",
        "jmp [eax+ecx*4]": "ff2488",
        "leave": "c9",
        "hlt": "f4",
        "mov gs, eax": "8ee8",
        "ud2": "0f0b",
    },
}


def check(isa: Isa, code: bytes, make: type[Prober], rules: Rules, states: int = STATES) -> SiteResult:
    """Check one instruction with room around it."""
    filler = isa.traps.breakpoints[0]
    data = code + filler * (64 // len(filler))
    plain, patched = (TrialCpu(isa, [Stretch(ADDRESS, data)], stepping=stepping) for stepping in (True, False))
    prober = make(patched, NEAR, rules)  # type: ignore[call-arg]
    return SiteChecker(plain, patched, prober, states).check(CheckSite(ADDRESS, data[:16]))


CASES = [(isa, name, code) for isa, codes in SITES.items() for name, code in codes.items()]


@pytest.mark.parametrize("make", [PidProber, UprobeProber])
@pytest.mark.parametrize(("isa", "name", "code"), CASES, ids=[f"{isa}-{name}" for isa, name, _ in CASES])
def test_instructions_are_the_same_with_a_probe(isa: str, name: str, code: str, make: type[Prober]) -> None:
    del name
    result = check(ISAS[isa], bytes.fromhex(code), make, Rules())
    assert result.outcome in {Outcome.AGREED, Outcome.REFUSED}, [str(one) for one in result.divergences]
    assert (result.states == STATES) is (result.outcome is Outcome.AGREED)


@pytest.mark.parametrize("isa", SITES)
def test_a_wrong_rule_is_caught_in_the_smallest_state(isa: str) -> None:
    # Instructions that no register matters to, which both emulate.
    code = bytes.fromhex({"x86_64": "90", "aarch64": "80000010", "riscv64": "17050000", "i386": "90"}[isa])
    for rules in (Rules(pid=rules_under_test.WRONG[isa]), Rules(uprobe=rules_under_test.UPROBES[isa])):
        result = check(ISAS[isa], code, PidProber if rules.pid else UprobeProber, rules)
        assert result.outcome is Outcome.DIVERGED
        divergence = result.divergences[0]
        assert not any(divergence.state.registers.values())
        assert [str(one) for one in divergence.differences] == [
            f"end: pc {ADDRESS + len(code):#x} became pc {ADDRESS + len(code) + 4:#x}"
        ]


def test_the_systems_own_mistakes_are_found() -> None:
    # FreeBSD replaces rip by rax, which cmpxchg uses without naming it.
    code = bytes.fromhex(SITES["x86_64"]["cmpxchg [rip+0x10000], ecx"])
    assert check(ISAS["x86_64"], code, PidProber, Rules()).outcome is Outcome.AGREED
    result = check(ISAS["x86_64"], code, PidProber, Rules(fidelity=Fidelity.FREEBSD))
    assert result.outcome is Outcome.DIVERGED


def test_a_clock_is_not_a_divergence() -> None:
    assert check(ISAS["x86_64"], bytes.fromhex("0f31"), PidProber, Rules()).outcome is Outcome.UNREPEATABLE


@pytest.mark.parametrize("isa", SITES)
def test_the_ways_of_out_of_line_code_share_the_states(isa: str) -> None:
    isa_object = ISAS[isa]
    code = {"x86_64": "480fafc1", "aarch64": "2084214e", "riscv64": "3345b502", "i386": "0fafc1"}[isa]
    cpu = TrialCpu(isa_object, [Stretch(ADDRESS, bytes.fromhex(code) * 8)], stepping=False)
    looked = PidProber(cpu, NEAR, Rules()).look(CheckSite(ADDRESS, bytes.fromhex(code)))
    names = [way.name for way in looked.ways]  # type: ignore[union-attr]
    assert names == [
        "out of line, far",
        "out of line, far, and a probe after it",
        "out of line, near",
        "out of line, near, and a probe after it",
    ]


@pytest.mark.parametrize("isa", SITES)
def test_states_are_the_same_every_time_and_of_all_kinds(isa: str) -> None:
    states = pool(isa)
    assert len(states) == POOL
    pool.cache_clear()
    assert pool(isa) == states
    kinds = {states[number].kind for number in chosen(0x1234, 14)}
    assert kinds == {state.kind for state in states}, "fourteen states in a row are of all kinds"


# -- kernels


@pytest.mark.parametrize("isa", SITES)
def test_kernel_sites_on_both_trap_paths(isa: str) -> None:
    subject = Subject(find_file("testbins:kernel", ISAS[isa]), isa, function="sys_get*")
    rules = Rules()
    plain, patched = subject.cpu(stepping=True), subject.cpu(stepping=False)
    host = SiteChecker(plain, patched, subject.prober(patched, rules), STATES)
    guest = KernelPathChecker(subject, rules, STATES)
    sites = subject.sites(rules)
    assert len(sites) >= 4
    for site in sites:
        for checker in (host, guest):
            result = checker.check(site)  # type: ignore[attr-defined]
            assert result.outcome is Outcome.AGREED, [str(one) for one in result.divergences]
            assert result.states + result.left_out == STATES


@pytest.mark.parametrize("isa", SITES)
def test_a_wrong_table_is_caught_in_a_kernel(isa: str) -> None:
    subject = Subject(find_file("testbins:kernel", ISAS[isa]), isa, function="sys_getpid")
    rules = Rules(displaced=rules_under_test.TABLES[isa])
    plain, patched = subject.cpu(stepping=True), subject.cpu(stepping=False)
    checker = SiteChecker(plain, patched, subject.prober(patched, rules), STATES)
    assert Outcome.DIVERGED in {checker.check(site).outcome for site in subject.sites(rules)}


# -- runs


@pytest.mark.parametrize("provider", ["pid", "uprobe"])
@pytest.mark.parametrize("isa", SITES)
def test_a_program_is_the_same_with_all_its_sites_probed(isa: str, provider: str) -> None:
    subject = Subject(find_file("testbins:tiny", ISAS[isa]), isa, provider, every_instruction=True)
    result = run_check(RunSpec(subject), Rules())
    assert result.same, result
    assert result.fired > 0


def _with_returns(isa: str, case: str) -> RunSpec:
    return RunSpec(Subject(find_file("testbins:zoo", ISAS[isa]), isa, "uprobe"), (case,), returns=True)


@pytest.mark.parametrize("isa", SITES)
def test_a_program_is_the_same_when_its_return_addresses_are_replaced(isa: str) -> None:
    result = run_check(_with_returns(isa, "recursion"), Rules())
    assert result.same, result
    assert result.name.endswith("(uprobe, return probes)")
    assert result.fired > 100


@pytest.mark.parametrize("isa", SITES)
def test_an_exception_that_passes_a_replaced_return_address_is_found(isa: str) -> None:
    """The unwinder finds no function at the trampoline, so it calls std::terminate, as on Linux."""
    result = run_check(_with_returns(isa, "cxx"), Rules())
    assert not result.same
    assert any("became exit status 134" in one for one in result.differences)
    assert "its return address was replaced" in result.culprit


@pytest.mark.parametrize("isa", SITES)
def test_functions_that_use_their_own_return_address_get_no_return_probe(isa: str) -> None:
    spec = _with_returns(isa, "setjmp")
    probed = {site.function for site in spec.chosen(spec.subject.sites(Rules()))}
    assert {"main", "fib"} <= probed
    assert not {"_start", "__sigsetjmp", "__clone"} & probed
    assert run_check(spec, Rules()).same


@pytest.mark.parametrize("isa", SITES)
def test_a_difference_is_bisected_to_its_site(isa: str) -> None:
    subject = Subject(find_file("testbins:tiny", ISAS[isa]), isa, "pid", every_instruction=True)
    right = replace(rules_under_test.fasttrap.PORTS[isa])
    broken: list[int] = []

    def treat(code: rules_under_test.Any, fidelity: Fidelity) -> rules_under_test.Any:
        found = right.treat(code, fidelity)
        return rules_under_test.WRONG[isa].treat(code, fidelity) if code.address in broken else found

    rules = Rules(pid=replace(right, treat=treat))
    straight = [
        site
        for site in subject.sites(rules)
        if rules_under_test.WRONG[isa].treat(_code(site), Fidelity.EXACT) != right.treat(_code(site), Fidelity.EXACT)
    ]
    reached = {one.site.address for one in check_recorded(RunSpec(subject), Rules())}
    culprit = next(site for site in straight if site.address in reached)
    broken.append(culprit.address)
    result = run_check(RunSpec(subject), rules)
    assert not result.same
    assert result.culprit.startswith(culprit.name)
    assert "pc 0x" in result.culprit


@pytest.mark.parametrize("isa", SITES)
def test_a_run_that_a_probe_makes_endless_is_stopped_after_the_time_of_the_plain_one(
    isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was followed for two minutes of virtual time, at each step of the bisection."""
    subject = Subject(find_file("testbins:tiny", ISAS[isa]), isa, "pid", every_instruction=True)
    right = replace(rules_under_test.fasttrap.PORTS[isa])
    reached = [one.site for one in check_recorded(RunSpec(subject), Rules())]
    emulated = [site for site in reached if isinstance(right.treat(_code(site), Fidelity.EXACT), Emulated)]
    again = Plan((Set(ISAS[isa].registers.pc, ISAS[isa].registers.pc, 0),))

    def treat(code: rules_under_test.Any, fidelity: Fidelity) -> rules_under_test.Any:
        found = right.treat(code, fidelity)
        return replace(found, plan=again) if code.address == emulated[0].address else found

    limits = []
    go = guest_runs.LinuxRun.go

    def timed(run: guest_runs.LinuxRun, longest: int = guest_runs.LONGEST_RUN) -> Ended:
        ended = go(run, longest)
        limits.append((longest, ended))
        return ended

    monkeypatch.setattr(guest_runs.LinuxRun, "go", timed)
    monkeypatch.setattr(ended_module, "_MORE", 100_000)
    result = run_check(RunSpec(subject), Rules(pid=replace(right, treat=treat)))
    assert not result.same
    assert any("not over in time" in difference for difference in result.differences)
    assert result.culprit.startswith(emulated[0].name)
    assert "it stays at" in result.culprit
    endless = [(longest, ended) for longest, ended in limits if ended.status == "not over in time"]
    assert endless
    plain = limits[0][1]
    assert all(longest == plain.enough < guest_runs.LONGEST_RUN // 10 for longest, _ in endless)
    assert all(ended.time <= plain.enough + 1_000_000 for _, ended in endless)


def _code(site: CheckSite) -> rules_under_test.Any:
    return rules_under_test.fasttrap.port.Code(site.code, site.address)


def test_memory_is_lent_anew_at_each_visit() -> None:
    isa = ISAS["x86_64"]
    asked: list[int] = []

    def lend(page: int) -> tuple[bytes, Access]:
        asked.append(page)
        return bytes(PAGE), Access.READ

    code = [Stretch(ADDRESS, bytes.fromhex("8b0424") * 8)]  # mov eax, [rsp]
    plain, patched = (BorrowingCpu(isa, code, stepping=stepping, space=BorrowedSpace) for stepping in (True, False))
    plain.space.lend = patched.space.lend = lend
    checker = RecordedChecker(plain, patched, PidProber(patched, NEAR, Rules()), 1, native=False)
    state = State("met in a run", {**dict.fromkeys(general_registers(isa), 0), "rsp": 0x7000_0000}, 2)
    for visit in (1, 2):
        assert checker.check_in(CheckSite(ADDRESS, code[0].data[:16]), state).outcome is Outcome.AGREED
        assert asked == [0x7000_0000] * 2 * visit


@pytest.mark.parametrize("isa", SITES)
def test_states_met_in_a_run_agree(isa: str) -> None:
    subject = Subject(find_file("testbins:tiny", ISAS[isa]), isa, "pid", every_instruction=True)
    results = check_recorded(RunSpec(subject), Rules())
    assert len(results) >= 5
    assert {one.outcome for one in results} == {Outcome.AGREED}
    assert all(one.states for one in results)


@pytest.mark.parametrize("kind", ["pid", "uprobe"])
@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_reads_its_own_mappings_does_not_find_those_of_the_probes(isa, kind):
    subject = Subject(find_file("testbins:calls", ISAS[isa]), isa, kind)
    result = run_check(RunSpec(subject, ("personalities",)), Rules())
    assert result.same, result
    assert result.fired
