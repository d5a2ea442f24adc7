"""System calls have the same results in the guest as on Linux, on every ISA.

The expected output of each case of `testbins/linux/calls` was written by a run on the hardware's
own Linux (`testbins/linux/calls/save-expected`).
"""

from pathlib import Path

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.emu.guest.linux.support import run

EXPECTED = Path(__file__).parents[4] / "testbins/linux/calls/expected"
CASES = sorted(path.stem for path in EXPECTED.glob("*.txt"))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES)
def test_a_case_prints_what_linux_prints(isa, case):
    ran = run(isa, (images.linux(ISAS[isa], "calls"), case))
    assert ran.output == (EXPECTED / f"{case}.txt").read_text()


def test_every_case_has_an_expected_output():
    listed = run("x86_64", (images.linux(ISAS["x86_64"], "calls"),)).output.split()[:-2]
    assert sorted(listed) == CASES
