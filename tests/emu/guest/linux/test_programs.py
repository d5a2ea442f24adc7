"""Real programs, statically linked with glibc, behave as under qemu-user and on hardware.

Their expected output was made by `testbins/linux/check-expected`, which runs them under qemu-user.
"""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.support import CASES, expected, run, zoo


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES)
def test_a_program_prints_what_it_prints_on_linux(isa, case):
    assert zoo(isa, case).output == expected(case, isa)


@pytest.mark.parametrize("case", ["recursion", "threads", "processes", "signals"])
def test_a_run_is_the_same_every_time(case):
    first, second = zoo("x86_64", case), zoo("x86_64", case)
    assert (first.output, first.instructions) == (second.output, second.instructions)


@pytest.mark.parametrize("case", ["recursion", "asm", "signals"])
@pytest.mark.parametrize("isa", ISAS)
def test_without_native_code_a_run_is_the_same_to_the_instruction(isa, case):
    native, interpreted = zoo(isa, case), zoo(isa, case, accelerated=False)
    assert (native.output, native.instructions) == (interpreted.output, interpreted.instructions)


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_without_a_library_runs(isa):
    from emu.guest.kernel.boot import images

    assert run(isa, [images.linux(ISAS[isa], "tiny")]).output == expected("tiny", isa)
