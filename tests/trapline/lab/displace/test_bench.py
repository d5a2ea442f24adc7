"""The assembly bench: the decision of instructions, and their effects when they are patched."""

import json
from dataclasses import replace

import pytest

from emu.assembly import machine_code
from emu.isa import ISAS
from providers import kinst, uprobes
from providers.fidelity import Fidelity
from tests.support.command import run_trapline
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.displace.bench import DisplaceError, displace
from trapline.lab.displace.report import as_data, as_text, run_as_text
from trapline.lab.displace.run import run, setting

FUNCTIONS = {
    "x86_64": "push rbp; mov rbp, rsp; cmp dword ptr [rip+8], 0; jne out; out: pop rbp; ret",
    "aarch64": "stp x29, x30, [sp, #-16]!; adrp x0, #4096; cbz x0, out; out: ldp x29, x30, [sp], #16; ret",
    "riscv64": "c.addi16sp sp, -32; c.sdsp ra, 24(sp); auipc a0, 1; c.ldsp ra, 24(sp); c.addi16sp sp, 32; c.jr ra",
    "i386": "push ebp; mov ebp, esp; cmp eax, 0; je out; out: pop ebp; ret",
}
STARTS = {"x86_64": {}, "aarch64": {"lr": 0x9000}, "riscv64": {"ra": 0x9000}, "i386": {}}
every_isa = pytest.mark.parametrize("isa", ISAS)


@every_isa
def test_each_provider_says_what_it_does_with_each_instruction(isa):
    found = displace(isa, FUNCTIONS[isa])
    providers = ["fbt", "pid", "uprobe", *(["kinst"] if isa in kinst.PORTS else [])]
    for one in found:
        assert [decision.provider for decision in one.decisions] == providers
        assert all(decision.why and decision.source for decision in one.decisions)
        assert all(
            bool(decision.patch) == (decision.what not in {"refused", "not a site"}) for decision in one.decisions
        )
        assert all(bool(decision.plan) or decision.what != "emulated" for decision in one.decisions)
        assert all(
            (decision.copy is not None) == (decision.what in {"out of line", "single-stepped"})
            for decision in one.decisions
        )
    probes = [one.decision("fbt").probe for one in found]
    assert probes.count("entry") == 1
    assert probes.count("return") == 1


@every_isa
def test_what_is_patched_does_the_same_as_the_original(isa):
    found = run(displace(isa, FUNCTIONS[isa]), isa, STARTS[isa])
    assert found.same
    assert len(found.executed) == FUNCTIONS[isa].count(";") + 1
    tried = {each.provider for one in found.executed for each in one.probed if each.probed}
    assert tried >= {"fbt", "pid", "uprobe"} | ({"kinst"} if isa in kinst.PORTS else set())
    assert found.stopped.startswith("the code was left for 0x")


ADDITIONS = {"x86_64": "inc eax", "i386": "inc eax", "aarch64": "add x0, x0, #1", "riscv64": "c.addi a0, 1"}
NOPS = {"x86_64": "nop", "i386": "nop", "aarch64": "nop", "riscv64": "c.nop"}


@every_isa
def test_a_copy_that_is_another_instruction_is_found_out(isa, monkeypatch):
    port = uprobes.PORTS[isa]

    def treat(code, fidelity):
        return replace(port.treat(code, fidelity), code=machine_code(ISAS[isa], NOPS[isa]))

    wrong = Rules(uprobe=replace(port, treat=treat))
    monkeypatch.setattr("trapline.lab.displace.run.Rules", lambda: wrong)
    found = run(displace(isa, ADDITIONS[isa]), isa, {})
    assert not found.same
    differences = {each.provider: each.differences for each in found.executed[0].probed}
    assert differences.pop("uprobe")
    assert not any(differences.values())
    assert any("NOT the same: uprobe single-stepped" in line.plain for line in run_as_text(found))


def test_relocations_are_told_in_words():
    one = displace("x86_64", "cmp dword ptr [rip+8], 0")[0]
    assert "rsi = 0x7, the next address" in one.decision("pid").how
    assert one.decision("pid").copy.text == "cmp dword ptr [rsi + 8], 0"
    assert "bytes 2 to 5 become the distance from the copy to 0xf" in one.decision("kinst").how
    assert one.decision("pid").differs[0].startswith("FreeBSD: out of line, a copy, rewritten as 83b8")


def test_what_others_do_is_told_of_those_that_decide_themselves():
    """FreeBSD has no uprobes, and Linux no pid provider."""
    jump = displace("x86_64", b"\xff\x24\xc2" + b"\x90" * 4, fidelity=Fidelity.FREEBSD)[0]
    assert [one.partition(":")[0] for one in jump.decision("pid").differs] == ["exact"]
    move = b"\xc5\xfe\x7f\x07"  # vmovdqu [rdi], ymm0
    told = {one: displace("x86_64", move, fidelity=one)[0].decision("uprobe").differs for one in Fidelity}
    assert [[each.partition(":")[0] for each in told[one]] for one in Fidelity] == [["Linux"], ["Linux"], ["exact"]]


def test_the_code_before_an_instruction_counts():
    alone = displace("aarch64", "add x1, x1, #1")[0].decision("pid")
    between = displace("aarch64", "ldxr x1, [x0]; add x1, x1, #1; stxr w2, x1, [x0]")[1].decision("pid")
    assert (alone.what, between.what) == ("out of line", "refused")


def test_bytes_are_taken_too_also_those_that_are_no_instruction():
    assert displace("aarch64", bytes.fromhex("fd7bbfa9")) == displace("aarch64", "stp x29, x30, [sp, #-0x10]!")
    (one,) = displace("x86_64", b"\x06")
    assert {decision.what for decision in one.decisions} == {"refused", "not a site"}


def test_memory_and_registers_are_set_and_changes_are_told():
    settings = dict(setting(ISAS["x86_64"], text) for text in ("rdi=0x100", "[0x100]=7"))
    found = run(displace("x86_64", "mov rax, [rdi]; mov [rdi+8], rax"), "x86_64", settings)
    assert [(one.what, one.before, one.after) for step in found.executed for one in step.changes] == [
        ("rax", 0, 7),
        ("[0x108]", 0, 7),
    ]
    assert found.stopped == "at the end of the code"


def test_a_fault_and_a_loop_end_the_run():
    assert run(displace("x86_64", "ud2; nop"), "x86_64", {}).stopped.startswith("signal 4")
    assert run(displace("x86_64", "1: jmp 1b"), "x86_64", {}, count=3).stopped == "after 3 instructions"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x86", "nop"), "'x86' is not an ISA (did you mean 'x86_64'?)"),
        (("x86_64", "--hex", "zz"), "'zz' is not bytes in hexadecimal"),
        (("x86_64", "nop", "--run", "rdy=5"), "'rdy' is not a register of x86-64 (did you mean 'rdx'?)"),
        (("x86_64", "nop", "--run", "rdx"), "'rdx' is not REGISTER=NUMBER"),
        (("x86_64", "nop", "--run", "rdx=0x10000000000000000"), "the number does not fit 64 bits"),
        (("i386", "nop", "--provider", "kinst"), "there is no kinst on this ISA"),
        (("riscv64", "nop", "--at", "1"), "0x1 is not a multiple of 2"),
        (("riscv64", "--hex", "0100ff"), "the last byte is not a whole instruction of RISC-V"),
        (("aarch64", "adr x0, 1; bogus"), "instruction 2, 'bogus': there is no instruction 'bogus' on AArch64"),
    ],
)
def test_wrong_input_gets_one_line(arguments, message):
    result = run_trapline(["displace", *arguments])
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_isa_has_its_option_as_in_other_commands():
    plain = run_trapline(["displace", "riscv64", "c.jr ra"])
    assert plain.stdout
    assert run_trapline(["displace", "--isa", "riscv64", "c.jr ra"]).stdout == plain.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Error: no ISA and no code: displace x86_64 'push rbp; ret'"),
        (["x86_64"], "Error: no code: displace x86_64 'push rbp; ret'"),
        (["x86_64", "push", "rbp"], "Error: 'rbp' is one word too many: quote the code"),
    ],
)
def test_other_words_are_a_mistake(words, message):
    result = run_trapline(["displace", *words])
    assert result.returncode == 2
    assert result.stderr.endswith(f"{message}\n")


def test_the_command_prints_the_report_or_the_same_as_json():
    arguments = ["displace", "riscv64", "c.sdsp ra, 8(sp); ret", "--run", "ra=0x100", "--provider", "uprobe"]
    text = run_trapline(arguments).stdout
    assert "on this ISA" not in text, "a provider that is not asked for is not missing"
    del arguments[-2:]
    text = run_trapline(arguments).stdout
    assert text.startswith("\n".join(line.plain for line in as_text(displace("riscv64", "c.sdsp ra, 8(sp); ret"))))
    data = json.loads(run_trapline([*arguments, "--json", "-"]).stdout)
    assert data["instructions"] == json.loads(json.dumps(as_data("riscv64", displace(*arguments[1:3]))))["instructions"]
    assert data["run"]["same"]


def test_notebooks_get_tables():
    code = displace("riscv64", "c.sdsp ra, 8(sp)")
    assert code._repr_html_().count("<tr>") == 2
    assert "c.sdsp" in run(code, "riscv64", {})._repr_html_()


def test_an_address_that_code_cannot_have_is_refused():
    with pytest.raises(DisplaceError, match="is not an address of i386"):
        displace("i386", "nop", address=1 << 32)
