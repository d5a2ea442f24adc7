"""The walk over instructions ends at bytes that do not decode, and at the limit."""

import pytest

from emu.isa import ISAS
from emu.isa.disassembly import instructions

CODE = {
    "x86_64": ("55 4889e5 e800000000 5d c3 06", [1, 3, 5, 1, 1]),
    "i386": ("55 89e5 e800000000 5d c3 fffe", [1, 2, 5, 1, 1]),
    "aarch64": ("fd7bbfa9 fd030091 c0035fd6 00", [4, 4, 4]),
    "riscv64": ("4111 06e4 13050500 8280 13", [2, 2, 4, 2]),
}


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_a_walk(isa):
    text, sizes = CODE[isa.name]
    code = bytes.fromhex(text)
    found = list(instructions(isa.instruction_length, code))
    assert [size for _, size in found] == sizes
    assert found[-1][0] == sum(sizes[:-1])
    assert list(instructions(isa.instruction_length, code, found[1][0])) == found[:1]
