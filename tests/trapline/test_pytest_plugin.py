"""The plugin in a user's own repository: passing and failing checks, and the messages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.runner.assertion import assert_same_with_probe

from .lab.check import rules_under_test

pytest_plugins = ["pytester"]

# A function that doubles its argument, by ISA.
PROGRAMS = {
    "x86_64": "554889e58d043f5dc3",  # push rbp; mov rbp,rsp; lea eax,[rdi+rdi]; pop rbp; ret
    "aarch64": "fd7bbfa90000000bfd7bc1a8c0035fd6",  # stp; add w0,w0,w0; ldp; ret
    "riscv64": "97020000411106e42a95a26041018280",  # auipc t0; addi; sd ra,8(sp); add a0,a0,a0; ld ra; addi; ret
    "i386": "5589e58b450801c05dc3",  # push ebp; mov ebp,esp; mov eax,[ebp+8]; add eax,eax; pop ebp; ret
}

SUITE = f"""
CODE = {{name: bytes.fromhex(code) for name, code in {PROGRAMS!r}.items()}}


def test_doubles(trapline_isa, trapline_function):
    assert trapline_function(CODE[trapline_isa.name]).call(21) == 42


def test_is_the_same(trapline_isa, assert_same_with_probe):
    assert_same_with_probe(CODE[trapline_isa.name], 21, isa=trapline_isa)


def test_assembly_is_a_function(trapline_isa, trapline_assemble, trapline_function, assert_same_with_probe):
    code = trapline_assemble("ret")
    assert trapline_function(code).call(21) in (0, 21)
    assert_same_with_probe("nop; ret", isa=trapline_isa, states=2)


def test_patches(trapline_machine, trapline_patcher):
    guest = trapline_machine.guest
    address = guest.image.symbol("sys_getpid").value
    tracepoint = trapline_patcher.create(address, guest.isa.traps.breakpoints[0], "mine")
    trapline_patcher.install(tracepoint)
    assert guest.engine.read(address, 1) != tracepoint.original[:1]
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a repository with tests of its own."""
    pytester.makepyfile(test_mine=SUITE)
    return pytester


@pytest.mark.exhaustive
def test_the_fixtures_run_for_each_isa(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("-q")
    result.assert_outcomes(passed=4 * len(ISAS))


def test_one_isa_alone(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess("--trapline-isa", "riscv64", "-k", "same").assert_outcomes(passed=1, deselected=3)
    result = suite.runpytest_subprocess("--trapline-isa", "riscv46")
    result.stderr.fnmatch_lines(["*--trapline-isa riscv46: supported are x86_64, *"])


def test_checks_are_tests(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
        [pytest]
        trapline_check =
            testbins:tiny --isa aarch64 --every-instruction --states 4
            testbins:tiny --isa riscv64 --every-instruction --states 2 --rules wrong:RULES
            testbins:tinny
        """
    )
    pytester.makepyfile(wrong="from tests.trapline.lab.check.rules_under_test import riscv64 as RULES")
    result = pytester.runpytest_subprocess("--trapline-check")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*NOT the same: *", "*became pc *", "*no testbins:tinny (did you mean 'testbins:tiny'?)*"]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_line_does_all_that_the_command_does(pytester: pytest.Pytester) -> None:
    """What stands behind the parser, too: objects, reports, exhibits, results that are kept."""
    pytester.makeini(
        """
        [pytest]
        trapline_check =
            testbins:kernel --isa riscv64 --object /does/not/exist.o --glue fbt
            testbins:kernel --isa riscv64 --object testbins:scanner-buggy.o --glue fbt --function sys_access
            testbins:kernel --isa riscv64 --object testbins:scanner.o --glue fbt --function sys_access
            testbins:tiny --isa riscv64 --states 1 --report report.json --results kept.sqlite
            testbins:tiny --isa riscv64 --states 1 --report /nowhere/report.json
            testbins:tiny --isa riscv64 --states 1 --function nothing --no-run
            --museum nosuch
            --museum ebreak-length
            --encodings riscv64 --sample 2
        """
    )
    result = pytester.runpytest_subprocess("--trapline-check")
    result.assert_outcomes(passed=4, failed=5)
    result.stdout.fnmatch_lines(["*/does/not/exist.o: no such file*", "*no exhibit 'nosuch'*"])
    assert (pytester.path / "report.json").exists()
    assert (pytester.path / "kept.sqlite").exists()
    assert "Traceback" not in result.stdout.str()


def test_nothing_to_check_is_said(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--trapline-check")
    result.stderr.fnmatch_lines(["*nothing to check; list it in the ini option trapline_check*"])


def test_who_does_not_ask_pays_nothing() -> None:
    heavy = ("unicorn", "capstone", "lark", "emu")
    code = f"import sys, trapline.pytest_plugin; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("isa", PROGRAMS)
def test_the_assertion_tells_where_they_part(isa: str) -> None:
    code = bytes.fromhex(PROGRAMS[isa])
    assert_same_with_probe(code, 21, isa=ISAS[isa], states=4)
    with pytest.raises(AssertionError, match="with FBT's probes"):
        assert_same_with_probe(code, 21, isa=ISAS[isa], states=4, rules=Rules(displaced=rules_under_test.TABLES[isa]))
    with pytest.raises(AssertionError, match=r"code\+0x.*became"):
        assert_same_with_probe(code, 21, isa=ISAS[isa], states=14, rules=Rules(pid=rules_under_test.WRONG[isa]))


@pytest.mark.parametrize("isa", PROGRAMS)
def test_functions_of_programs(isa: str) -> None:
    program = images.built(ISAS[isa]) / "functions" / "work"
    assert_same_with_probe("work", 1, program=program, states=4)
    with pytest.raises(TypeError, match="give its program"):
        assert_same_with_probe("work", 1)
