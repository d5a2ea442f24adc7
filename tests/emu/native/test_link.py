"""Relocations of arm64 hosts: the changed instructions say what was meant, as capstone reads them."""

import capstone
import pytest

from emu.isa.relocations import Reference
from emu.native.link import HOSTS, host_relocations

ARM64 = 183
PLACE, TARGET = 0x7F12_3456_7008, 0x7F12_0ABC_DEF0
DECODER = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)


def changed(kind, word, target=TARGET):
    how = host_relocations(ARM64).types[kind]
    value = how.value(Reference(target, 0, PLACE, entry=target))
    if not how.field.holds(value):
        return "too far"
    (instruction,) = DECODER.disasm(how.field.put(word, value).to_bytes(how.field.size, "little"), PLACE)
    return f"{instruction.mnemonic} {instruction.op_str}"


@pytest.mark.parametrize(
    ("kind", "word", "expected"),
    [
        (264, 0xD2800000, "mov x0, #0xdef0"),
        (266, 0xF2A00000, "movk x0, #0xabc, lsl #16"),
        (268, 0xF2C00000, "movk x0, #0x7f12, lsl #32"),
        (269, 0xF2E00000, "movk x0, #0, lsl #48"),
        (275, 0x90000000, f"adrp x0, #{TARGET & -0x1000:#x}"),
        (277, 0x91000000, "add x0, x0, #0xef0"),
        (285, 0xB9400000, "ldr w0, [x0, #0xef0]"),
        (286, 0xF9400000, "ldr x0, [x0, #0xef0]"),
        (299, 0x3DC00000, "ldr q0, [x0, #0xef0]"),
        (312, 0xF9400000, "ldr x0, [x0, #0xef0]"),
    ],
)
def test_an_instruction_gets_its_target(kind, word, expected):
    assert changed(kind, word) == expected


@pytest.mark.parametrize(("kind", "word", "name"), [(282, 0x14000000, "b"), (283, 0x94000000, "bl")])
def test_a_branch_reaches_its_target_or_says_that_it_is_too_far(kind, word, name):
    assert changed(kind, word, PLACE - 0x7FF_FFF8) == f"{name} #{PLACE - 0x7FF_FFF8:#x}"
    assert changed(kind, word, PLACE + 0x800_0000) == "too far"
    assert kind in HOSTS[ARM64].jumps


def test_a_far_jump_goes_to_the_address_behind_it():
    code = HOSTS[ARM64].far_jump
    assert [f"{i.mnemonic} {i.op_str}" for i in DECODER.disasm(code, 0)] == ["ldr x16, #8", "br x16"]
    assert len(code) == 8
