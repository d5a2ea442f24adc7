"""Servers, compilers, archivers and shells together behave in the guest as they do natively.

The expected output of each script was written by `scripts/save-expected`.  A test runs each script
on one ISA, in turn; `python -m benchmarks.programs` runs all on all.
"""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.programs.workloads import DEBIAN, SCRIPTS, script_in_guest

pytestmark = pytest.mark.debian

CASES = [(list(ISAS)[index % len(ISAS)], name) for index, name in enumerate(SCRIPTS) if name != "node"]


@pytest.mark.parametrize(("isa", "name"), CASES)
def test_a_script_prints_what_it_prints_natively(isa, name):
    if not (DEBIAN / isa / "usr/bin/bash").exists():
        pytest.skip("Debian's programs are not there: `make debian` gets them")
    ran, wanted = script_in_guest(isa, name, probed=False)
    assert ran.output == wanted
    assert not ran.problems, "system calls that are not there"
