"""The smallest bytes for which a condition holds."""

import pytest

from trapline.lab.objects.decoder.decisions import shrunk


@pytest.mark.parametrize(
    ("data", "wanted", "smallest"),
    [("66664831c0", "31", "31"), ("0f1f440000", "0f44", "0f44"), ("ff", "", "00")],
)
def test_bytes_that_do_not_matter_are_removed(data, wanted, smallest):
    def holds(candidate):
        rest = iter(candidate)
        return all(byte in rest for byte in bytes.fromhex(wanted))

    assert shrunk(bytes.fromhex(data), holds, one_size=False).hex() == smallest


def test_instructions_of_one_size_keep_it_and_lose_bits():
    assert shrunk(bytes.fromhex("ffffffff"), lambda code: code[1] & 0x10 and code[3] & 1, one_size=True).hex() == (
        "00100001"
    )


def test_a_condition_that_is_never_true_for_less_ends():
    data = bytes(range(1, 16))
    asked = []
    assert shrunk(data, asked.append, one_size=False) == data
    assert len(asked) == len(set(asked)) <= 400
