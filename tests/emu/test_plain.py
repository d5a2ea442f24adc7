"""Plain memory: addresses that stay, and blocks whose attributes are words."""

from __future__ import annotations

import ctypes

import pytest

from emu.cpu_core import CoreWord, CpuCore, CpuFlag
from emu.plain import Pinned, Word, address_of, words


class _Block:
    first = Word(0)
    second = Word(1)

    def __init__(self):
        self.words = words(2)


def test_attributes_of_a_block_are_its_words():
    block = _Block()
    block.second = (1 << 64) - 1
    assert list(block.words) == [0, (1 << 64) - 1]
    assert ctypes.c_uint64.from_address(address_of(block.words) + 8).value == block.second
    ctypes.c_uint64.from_address(address_of(block.words)).value = 7
    assert block.first == 7


def test_pinned_bytes_cannot_change_their_size():
    data = bytearray(b"abc")
    pinned = Pinned(data)
    assert ctypes.string_at(pinned.address, 3) == b"abc"
    with pytest.raises(BufferError):
        data += b"d"
    data[0:3] = b"xyz"
    assert ctypes.string_at(pinned.address, 3) == b"xyz"


def test_no_bytes_have_no_address():
    assert Pinned(bytearray()).address == 0


def test_flags_and_values_of_a_cpu_are_words_at_its_address():
    core = CpuCore()
    core.flags |= CpuFlag.BADADDR
    core.illval = -1
    read = ctypes.c_uint64.from_address
    assert read(core.address + 8 * CoreWord.FLAGS).value == CpuFlag.BADADDR
    assert read(core.address + 8 * CoreWord.ILLVAL).value == (1 << 64) - 1
    read(core.address + 8 * CoreWord.FLAGS).value = 0
    assert core.flags == 0
