"""The personality of a thread, and what uname says with it."""

import pytest

from emu.guest.linux.process.personality import UNAME26, is_allowed, machine, release, started
from emu.isa import ISAS
from emu.isa.linux_abi import READ_IMPLIES_EXEC

LINUX32, NO_RANDOM = 8, 0x40000
MACHINES = {"x86_64": "i686", "i386": "i686", "aarch64": "aarch64", "riscv64": "riscv"}


@pytest.mark.parametrize("isa", ISAS)
def test_a_machine_may_have_another_name_for_32_bits(isa):
    abi = ISAS[isa].linux
    assert machine(NO_RANDOM, abi) == abi.machine
    if is_allowed(LINUX32, abi):
        assert machine(LINUX32 | NO_RANDOM, abi) == MACHINES[isa]
    else:
        assert isa == "aarch64"


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_keeps_what_its_isa_lets_it_keep(isa):
    abi = ISAS[isa].linux
    kept = started(LINUX32 | NO_RANDOM | READ_IMPLIES_EXEC, abi, changed=False)
    assert kept & NO_RANDOM
    assert bool(kept & LINUX32) is (isa != "i386")
    assert started(NO_RANDOM | UNAME26, abi, changed=True) == UNAME26


def test_an_old_kernel_has_a_version_of_its_time():
    assert release(0, "6.12.0") == "6.12.0"
    assert release(UNAME26, "6.12.0") == "2.6.72"
    assert release(UNAME26, "6.12.34-test.5") == "2.6.72-test.5"
