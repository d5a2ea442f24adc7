"""The lengths of x86 instructions, against another decoder's."""

import pytest

from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, instruction_length, instruction_lengths, take_apart
from emu.isa.x86.length import find_layout, find_length, find_lengths
from tests.emu.isa.x86_strings import EXPECTED, KEPT, string
from tests.support.some import some


def test_lengths_are_those_of_iced_x86():
    digits = EXPECTED.read_text("ascii").replace("\n", "")
    assert len(digits) == 2 * KEPT
    known = 0
    for number in range(KEPT):
        code = string(number)
        for long, digit in ((True, digits[number]), (False, digits[KEPT + number])):
            expected = int(digit, 16)
            # What iced-x86 refuses may be an instruction that only the CPU refuses.
            if expected:
                known += 1
                assert find_length(code, long=long) == expected, (code.hex(), long)
    assert known > KEPT


# Of capstone 5.0, which has other lengths for these, or none.
LONG = {
    "670fb94002": "ud1, which clang -fsanitize-trap writes",
    "0fff4002": "ud0",
    "c4e2f5b4c1": "vpmadd52luq ymm",
    "62f5745858c1": "vaddph",
    "c4e27550c1": "vpdpbusd",
    "c4e272dac1": "vsm4key4",
    "c4e2f9e04810": "cmpoxadd",
    "480f38fc08": "aadd",
    "f30f38d80f": "aesencwide128kl",
    "f30f01ee": "clui",
    "66410f38f806": "movdir64b",
    "f20f38f807": "enqcmd",
    "0f01c6": "wrmsrns",
    "dcd0": "fcom2",
    "dfc8": "fxch7",
    "0f1d4008": "reserved nop",
    "660f8512345678": "jnz with 66: four bytes of distance, as on Intel's CPUs",
    "48a11122334455667788": "mov rax, [moffs]",
    "66c78012345678abcd": "mov word [rax+disp32], imm16",
    "0f0f40089e": "pfadd",
    "8fe978c0c101": "XOP is none with this map and opcode",
    "d5180102": "add [r18], rax: REX2",
    "62f47c18ff4805": "EVEX, map 4: dec",
}
NOT_LONG = {"8fe978c0c101"}


@pytest.mark.parametrize("code", LONG, ids=LONG.get)
def test_a_length_that_capstone_does_not_know(code):
    data = bytes.fromhex(code)
    expected = 0 if code in NOT_LONG else len(data)
    assert instruction_length(data + bytes(15)) == expected


@pytest.mark.parametrize(
    ("code", "length"),
    [
        ("670fb9400200", 5),
        ("66e81234", 4),
        ("c58102030405", 6),
        ("628012345678", 6),
        ("9a112233445566", 7),
        ("d510", 2),
    ],
)
def test_a_length_in_32_bit_code(code, length):
    """67 makes addresses of 16 bits; c5 and 62 are lds and bound; d5 is aad."""
    assert instruction_length(bytes.fromhex(code) + bytes(15), PROTECTED_MODE) == length


@pytest.mark.parametrize(
    "code", ["06", "82c001", "d6", "ea", "0f04", "0f0a", "0fb8c0", "ffff", "fed0", "8d c0", "0f24c0"]
)
def test_what_is_no_instruction_has_no_length(code):
    assert instruction_length(bytes.fromhex(code) + bytes(15)) == 0


@pytest.mark.parametrize("code", LONG)
def test_an_instruction_that_is_not_all_there_has_no_length(code):
    data = bytes.fromhex(code)
    for size in some(range(len(data))):
        found = find_layout(data[:size], long=True)
        assert found is None or found.length <= size
        assert find_length(data[:size], long=True) == (found.length if found else 0)


def test_more_than_fifteen_bytes_are_no_instruction():
    assert instruction_length(b"\x66" * 14 + b"\x90") == 15
    assert instruction_length(b"\x66" * 15 + b"\x90") == 0


def test_what_is_known_changes_no_length():
    """A sweep keeps the lengths that it has found, by the first bytes."""
    for long in (True, False):
        for number in range(2000):
            code = string(number)
            found = find_layout(code, long=long)
            assert find_length(code, long=long) == (found.length if found else 0) == find_length(code, long=long)
            assert sum(find_lengths(code, long=long)) <= len(code)
    assert instruction_lengths(bytes.fromhex("5548c4e2f5b4c1c3"), LONG_MODE) == (1, 6, 1)


def test_the_parts_of_an_instruction():
    vector = take_apart(bytes.fromhex("67c4e2f5b44405fe"))
    assert (vector.at, vector.vector_at, vector.modrm_at, vector.length) == (1, 4, 5, 8)
    plain = take_apart(bytes.fromhex("4c0fb60c0590000000"))
    assert (plain.at, plain.rex, plain.modrm_at, plain.length, plain.vector_at) == (1, 0x4C, 3, 9, None)
    relative = take_apart(bytes.fromhex("670fb90510000000"))
    assert relative.relative_at == 3
