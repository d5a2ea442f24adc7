"""Real programs have the same output in the guest as under qemu-user, with and without probes.

`make debian` gets them; without them these tests are skipped.
"""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.programs.workloads import QEMU, in_guest, under_qemu, workloads

pytestmark = pytest.mark.debian

WORKLOADS = workloads()
QUICK = [workload for workload in WORKLOADS if not workload.slow]


def need(isa, workload):
    if not workload.is_there(isa):
        pytest.skip("Debian's programs are not there: `make debian` gets them")
    if QEMU[isa] is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")


def test_no_two_workloads_have_one_name():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS) >= 40


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("workload", QUICK, ids=lambda workload: workload.name)
def test_a_real_program_does_what_it_does_under_qemu(isa, workload):
    need(isa, workload)
    plain = in_guest(isa, workload, probed=False)
    wanted = under_qemu(isa, workload)
    assert workload.same(plain.output, wanted), (plain.output, wanted)
    assert not plain.problems, "system calls that are not there"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("workload", QUICK[::8], ids=lambda workload: workload.name)
def test_probes_in_the_c_library_change_nothing(isa, workload):
    need(isa, workload)
    plain, probed = in_guest(isa, workload, probed=False), in_guest(isa, workload, probed=True)
    assert probed.output == plain.output
    assert probed.fired or not workload.probe
