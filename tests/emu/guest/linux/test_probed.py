"""A probed program has the same output, the same ending, and the same number of instructions."""

import pytest

from emu.isa import ISAS
from providers.fidelity import Fidelity
from tests.emu.guest.linux.support import CASES, expected, zoo

pytestmark = pytest.mark.exhaustive

BOUNDARIES = "pid$target:::entry, pid$target:::return { @ = count(); }"
# For each case, the functions of which every instruction is probed.
OWN = {
    "recursion": "fib ackermann is_odd is_even",
    "setjmp": "*setjmp* *longjmp*",
    "args": "arg* greet",
    "asm": "asm_*",
    "switchcase": "*switch*",
    "divide": "*",
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES)
def test_with_every_function_probed_a_program_is_the_same(isa, case):
    plain, probed = zoo(isa, case), zoo(isa, case, BOUNDARIES)
    assert probed.output == expected(case, isa)
    assert probed.instructions == plain.instructions
    assert probed.fired > 100
    assert not probed.problems


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["recursion", "asm", "setjmp", "args"])
def test_with_every_instruction_of_its_functions_probed_a_program_is_the_same(isa, case):
    plain = zoo(isa, case)
    patterns = ", ".join(f"pid$target:a.out:{name}:" for name in OWN[case].split())
    probed = zoo(isa, case, f"{patterns} {{ @ = count(); }}")
    assert probed.output == expected(case, isa)
    assert probed.instructions == plain.instructions
    assert probed.fired > 20


def test_freebsds_loop_counts_off_by_one_and_ours_does_not():
    program = "pid$target:a.out:asm_loop*: { @ = count(); }"
    assert zoo("x86_64", "asm", program).output == expected("asm", "x86_64")
    assert zoo("x86_64", "asm", program, fidelity=Fidelity.FREEBSD).output != expected("asm", "x86_64")
