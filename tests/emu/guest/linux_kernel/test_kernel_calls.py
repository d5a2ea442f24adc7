"""The code of functions that a kernel calls, run on the CPU of each ISA, and errors."""

import pytest

from emu.guest.function import STACK, FunctionGuest
from emu.guest.linux_kernel.kernel_calls import KEY, error_name
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS

STRUCTURE = STACK - 512
WORD = 0xFFFF_8880_1234_5678
boards = pytest.mark.parametrize("isa", BOARDS)


def called(isa, code, *arguments):
    """Call a function; return its result as an int."""
    guest = FunctionGuest(ISAS[isa], code)
    guest.engine.store(STRUCTURE + KEY, 8, WORD)
    return guest.call(*arguments) & 0xFFFF_FFFF


@boards
def test_callbacks_return_what_python_has_decided(isa):
    code = BOARDS[isa].callback
    assert called(isa, code.landing + code.nop + code.zero, 7, 8) == 0
    assert called(isa, code.landing + code.one, 7, 8) == 1


@boards
def test_the_filter_accepts_one_address_space(isa):
    code = BOARDS[isa].callback
    for word in (WORD, WORD + 1, WORD - (1 << 40), 0):
        assert called(isa, code.landing + code.equal, STRUCTURE, word) == (word == WORD)


@pytest.mark.parametrize(("number", "name"), [(22, "EINVAL"), (524, "ENOTSUPP"), (4000, "4000")])
def test_errors_have_the_kernels_names(number, name):
    assert error_name(number) == name
