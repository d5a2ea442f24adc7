"""`trapline sites`: every probe site of a file and every refusal, as data, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.elf.file import ElfError
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from providers.fbt import PORTS
from providers.fidelity import Fidelity
from tests.emu.elf_file import LOCAL, ElfFile
from tests.providers.fbt.assembly import assemble
from tests.support.command import run_trapline
from trapline.commands.sites import sites_command
from trapline.lab.sites import report as sites_report
from trapline.lab.sites.fbt import SitesError, sites
from trapline.lab.sites.instructions import user_sites

ADDRESS = 0x40_0000
LISTINGS = {
    "x86_64": {
        "sys_read": """
            55          push rbp
            4889e5      mov rbp, rsp
            5d          pop rbp
            c3          ret
            c20800      ret 8
            e9f2efffff  jmp 0x3ff000
        """,
        "leaf": """
            31c0        xor eax, eax
            c3          ret
        """,
        "dtrace_probe": """
            55          push rbp
            c3          ret
        """,
    },
    "aarch64": {
        "sys_read": """
            fd7bbfa9    stp x29, x30, [sp, #-0x10]!
            02000014    b #0x40000c
            fd7bc1a8    ldp x29, x30, [sp], #0x10
            c0035fd6    ret
        """,
        "do_el1h_sync": """
            fd7bbfa9    stp x29, x30, [sp, #-0x10]!
            c0035fd6    ret
        """,
        "sys_write": """
            fd7bbfa9    stp x29, x30, [sp, #-0x10]!
            c0035fd6    ret
        """,
    },
    "riscv64": {
        "sys_read": """
            06ec        c.sdsp ra, 0x18(sp)
            233c1100    sd ra, 0x18(sp)
            67800000    ret
            0100        c.nop
        """,
    },
    "i386": {
        "sys_read": """
            55          push ebp
            89e5        mov ebp, esp
            5d          pop ebp
            c3          ret
        """,
    },
}


def file(isa="x86_64", **options):
    elf = ElfFile(isa=isa, **options)
    for name, listing in LISTINGS[isa].items():
        code = assemble(isa, listing, ADDRESS + len(elf.code))
        elf.function(name, ADDRESS + len(elf.code), len(code))
        elf.code += code.ljust(-(-len(code) // 16) * 16, b"\0")
    elf.code += bytes(16)
    return elf


@pytest.fixture(params=list(PORTS))
def isa(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kernel"


def written(path, isa="x86_64", **options):
    return file(isa, **options).write(path)


# Data.


def test_a_site_comes_with_its_instruction_its_patch_its_code_and_its_plan(path):
    entry, ret = sites(written(path), function="sys_read")[0].sites
    assert (entry.probe, entry.instruction.address, entry.instruction.offset) == ("entry", ADDRESS, 0)
    assert (entry.instruction.code, entry.instruction.text, entry.patch) == (b"\x55", "push rbp", b"\xcc")
    assert (entry.invop, entry.invop_name) == (1, "PUSHL_EBP")
    assert str(entry.decision.plan) == "[rsp-8] = rbp; rsp = rsp-8; rip = rip+1"
    assert (ret.probe, ret.instruction.offset, ret.invop_name) == ("return", 5, "RET")


def test_every_site_of_every_isa_can_be_emulated(path, isa):
    found = sites(written(path, isa))
    assert [function.name for function in found] == list(LISTINGS[isa])
    assert all(site.decision.plan is not None for function in found for site in function.sites)
    assert found[0].sites


def test_what_looks_like_a_return_and_is_none_comes_with_its_rule(path):
    passed = sites(written(path), function="sys_read")[0].passed_over
    assert [(each.instruction.text, each.rule.name) for each in passed] == [
        ("ret 8", "ret imm16"),
        ("jmp 0x3ff000", "tail call"),
    ]


def test_a_function_without_probes_comes_with_the_rule_that_refuses_it(path):
    refusals = {function.name: function.refusal and function.refusal.name for function in sites(written(path))}
    assert refusals == {"sys_read": None, "leaf": "no frame pointer", "dtrace_probe": "dtrace_*"}


def test_the_end_of_the_walk_holds_for_functions_after_it_even_when_only_they_are_asked_for(path):
    written(path, "aarch64")
    assert [function.refusal.name for function in sites(path, function="sys_write")] == ["walk ended"]


def test_a_site_that_should_be_none_says_so(path):
    branch = sites(written(path, "aarch64"), function="sys_read")[0].sites[1]
    assert (branch.instruction.text, branch.remark.name) == ("b #0x40000c", "not a tail call")


def test_a_file_called_dtrace_is_left_alone_as_the_module_would_be(tmp_path):
    found = sites(written(tmp_path / "dtrace.ko"))
    assert {function.refusal.name for function in found} == {"module dtrace"}
    assert len(found) == 3


def test_a_glob_chooses_functions(path):
    assert [function.name for function in sites(written(path), function="*e*f")] == ["leaf"]


# Wrong questions.


def test_a_glob_that_matches_nothing_is_answered_with_the_nearest_name(path):
    with pytest.raises(SitesError, match=r"kernel: no function matches 'sys_raed' \(did you mean 'sys_read'\?\)"):
        sites(written(path), function="sys_raed")


def test_a_file_without_functions_says_so(path):
    with pytest.raises(SitesError, match=r"kernel: no function symbols, and no \.eh_frame"):
        sites(ElfFile(code=b"\x55").write(path))


def test_a_file_of_another_isa_than_asked_for_is_refused(path):
    with pytest.raises(ElfError, match="kernel: made for x86_64, not riscv64"):
        sites(written(path), isa="riscv64")


# Text.


def lines(found):
    return [line.plain for line in sites_report.text(found)]


def test_the_text_has_a_block_per_function_a_legend_and_a_sum(path):
    report = lines(sites(written(path)))
    assert report[:8] == [
        "sys_read  0x400000, 14 bytes",
        "  entry   +0  55          push rbp      cc  PUSHL_EBP  [rsp-8] = rbp; rsp = rsp-8; rip = rip+1",
        "  return  +5  c3          ret           cc  RET        %0 = [rsp]; rsp = rsp+8; rip = %0",
        "  -       +6  c20800      ret 8         ret imm16",
        "  -       +9  e9f2efffff  jmp 0x3ff000  tail call",
        "leaf  0x400010, 3 bytes  no probes: no frame pointer",
        "dtrace_probe  0x400020, 2 bytes  no probes: dtrace_*",
        "",
    ]
    assert [line.split(":")[0] for line in report[8:12]] == [
        "ret imm16 (1)",
        "tail call (1)",
        "no frame pointer (1)",
        "dtrace_* (1)",
    ]
    why = "leaves the function by a jump; only the byte c3 is a return on x86"
    assert report[9] == f"tail call (1): {why}  [FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c]"
    assert report[12:] == ["", "3 functions: 1 with probes (1 entry site, 1 return site), 2 without"]


def test_a_remark_follows_its_site(path):
    report = lines(sites(written(path, "aarch64"), function="sys_read"))
    assert report[2].endswith("pc = pc+8  (not a tail call)")


def test_lines_of_one_function_go_by_address(path):
    report = lines(sites(written(path), function="sys_read"))
    offsets = [line.split()[1] for line in report[1:5]]
    assert offsets == sorted(offsets)


# JSON.


def test_json_says_the_same_as_the_data(path, isa):
    found = sites(written(path, isa))
    parsed = json.loads(json.dumps(sites_report.as_data(found)))
    assert [each["function"] for each in parsed] == [function.name for function in found]
    for each, function in zip(parsed, found, strict=True):
        assert int(each["address"], 16) == function.address
        assert each["refusal"] == (function.refusal and {
            "name": function.refusal.name, "why": function.refusal.why, "source": function.refusal.source,
        })  # fmt: skip
        for there, site in zip(each["sites"], function.sites, strict=True):
            assert bytes.fromhex(there["bytes"]) == site.instruction.code
            assert bytes.fromhex(there["patch"]) == site.patch
            assert "; ".join(there["displaced"]["plan"]) == str(site.decision.plan)
            assert (there["probe"], there["invop"]) == (site.probe, site.invop)
        assert len(each["passed_over"]) == len(function.passed_over)


# The command.


def run(*arguments):
    return CliRunner().invoke(sites_command, ["--provider", "fbt", *map(str, arguments)], prog_name="trapline sites")


def test_the_command_prints_the_report_without_colours_when_piped(path):
    result = run(written(path), "--function", "leaf", "--provider", "fbt")
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "leaf  0x400010, 3 bytes  no probes: no frame pointer"


def test_the_command_prints_json(path):
    result = run(written(path), "--json", "-", "--provider", "fbt", "--isa", "x86_64")
    assert result.exit_code == 0
    assert json.loads(result.output)[0]["function"] == "sys_read"


@pytest.mark.parametrize(("content", "arguments", "answer"), [
    (b"hello", [], "not an ELF file"),
    (file().bytes()[:200], [], "truncated: "),
    (ElfFile(code=b"\x55").bytes(), [], "no function symbols"),
    (file().bytes(), ["--function", "sys_raed"], "did you mean 'sys_read'?"),
    (file().bytes(), ["--isa", "aarch64"], "made for x86_64, not aarch64"),
])  # fmt: skip
def test_bad_input_is_one_line_on_standard_error_and_exit_1(path, content, arguments, answer):
    path.write_bytes(content)
    result = run(path, *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {path}: ")
    assert answer in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_wrong_option_is_exit_2(path):
    assert run(written(path), "--isa", "vax").exit_code == 2


@pytest.mark.parametrize("program", ["/bin/bash", *(f"/usr/{isa}-linux-gnu/lib/libc.so.6" for isa in PORTS)])
def test_any_program_of_the_host_can_be_listed(program):
    if not Path(program).is_file():
        pytest.skip(f"no {program} on this machine")
    try:
        found = sites(program)
    except SitesError:
        pytest.skip(f"{program} is stripped")
    assert any(function.sites for function in found)
    for function in found:
        assert bool(function.sites) != bool(function.refusal)
        addresses = [site.instruction.address for site in function.sites]
        assert addresses == sorted(addresses)
        assert all(function.address <= address < function.address + function.size for address in addresses)


def test_local_functions_are_shown_too(path):
    elf = file()
    elf.function("static_one", ADDRESS, 6, binding=LOCAL)
    assert sites(elf.write(path))[-1].name == "static_one"


def test_a_module_that_depends_on_dtrace_has_no_sites_as_in_the_guest():
    path = images.built(ISAS["x86_64"]) / "boot" / "kernel" / "systrace.ko"
    found = sites(path)
    assert found
    assert {function.refusal.name for function in found} == {"depends on dtrace"}


@pytest.mark.parametrize("isa", ISAS)
def test_the_packages_own_files_are_named_as_check_names_them(isa):
    run = run_trapline(["sites", "testbins:kernel", "--isa", isa, "--function", "sys_getpid", "--json", "-"])
    assert [each["function"] for each in json.loads(run.stdout)] == ["sys_getpid"]
    wrong = run_trapline(["sites", "testbins:kernle"])
    assert wrong.returncode == 1
    assert wrong.stderr == "Error: there is no testbins:kernle (did you mean 'testbins:kernel'?)\n"


def test_without_a_provider_a_kernel_is_fbts_and_a_program_the_pid_providers():
    program = run_trapline(["sites", "testbins:zoo", "--isa", "riscv64", "--function", "fib"])
    assert "emulated" in program.stdout
    assert (
        "sys_getpid"
        in run_trapline(["sites", "testbins:kernel", "--isa", "riscv64", "--function", "sys_getpid"]).stdout
    )


@pytest.mark.parametrize("provider", ["fbt", "pid", "uprobe", "kinst"])
def test_a_summary_counts_by_rule(provider):
    run = run_trapline(
        ["sites", "testbins:kernel", "--isa", "x86_64", "--provider", provider, "--summary", "--json", "-"]
    )
    found = json.loads(run.stdout)
    assert all(one["count"] > 0 and one["rule"] and one["why"] for one in found)
    assert [one["count"] for one in found] == sorted((one["count"] for one in found), reverse=True)


@pytest.mark.parametrize(("fidelity", "returns"), [(Fidelity.EXACT, [8]), (Fidelity.FREEBSD, [])])
def test_a_return_behind_what_does_not_decode_is_listed_as_it_is_probed(path, fidelity, returns):
    elf = ElfFile(isa="x86_64")
    elf.code = bytes.fromhex(
        "557401" + "06" + "4889ec5dc3"
    )  # push rbp; je; a byte that is none; mov rsp, rbp; pop; ret
    elf.function("f", ADDRESS, len(elf.code))
    elf.write(path)
    found = user_sites(path, fidelity=fidelity)
    assert [(one.offset, one.code) for one in found[:2]] == [(0, "55"), (1, "7401")]
    assert [one.offset for one in found[2:]] == [one.offset for one in found if "return" in one.probes] == returns


def test_there_is_not_a_kinst_for_i386():
    run = run_trapline(["sites", "testbins:kernel", "--isa", "i386", "--provider", "kinst"])
    assert run.stderr == "Error: there is no kinst for i386; there is for x86_64, aarch64, riscv64\n"
