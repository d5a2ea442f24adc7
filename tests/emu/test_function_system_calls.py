"""A function that makes a system call: there is no kernel that could take it."""

import pytest

from emu.guest.function import FunctionFaultError, FunctionGuest
from emu.isa import ISAS


@pytest.mark.parametrize("accelerated", [False, True], ids=["Python", "machine code"])
@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_system_call_is_a_fault_of_the_function(isa, accelerated):
    guest = FunctionGuest(isa, isa.linux.system_call * 2, accelerated=accelerated)
    with pytest.raises(FunctionFaultError, match="made a system call: a function guest has no kernel"):
        guest.call()
