"""Plain memory: addresses that stay, and blocks whose attributes are words."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest

from emu.displaced.cpu_core import CoreWord, CpuCore, CpuFlag
from emu.support.plain import Pinned, Word, address_of, words, zeroed


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


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("make", [zeroed, lambda size: words(size // 8)], ids=["bytes", "words"])
def test_many_bytes_take_no_memory_before_they_are_written(make):
    size = 64 << 20
    before = resident()
    data = make(size)
    assert resident() - before < size >> 3
    assert (data[0], data[len(data) - 1], memoryview(data).nbytes) == (0, 0, size)


@pytest.mark.parametrize("size", [16, 1 << 20])
def test_zeroed_bytes_are_read_and_written_alike(size):
    data = zeroed(size)
    pinned = Pinned(data)
    data[8:12] = b"word"
    assert ctypes.string_at(pinned.address, 16) == bytes(8) + b"word" + bytes(4)
    assert (bytes(data[8:12]), data[8], data.find(b"\0", 8, 16), len(data)) == (b"word", ord("w"), 12, size)
