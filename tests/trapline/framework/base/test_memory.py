"""DTrace's own memory: machine code finds the regions at their addresses."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from emu.displaced.cpu_core import CpuCore
from emu.isa import I386
from emu.support.plain import address_of
from tests.support.fake_guest import FakeGuest
from tests.trapline.framework.support import Bench
from trapline.framework.base.blocks import BufferWord, ConsumerWord
from trapline.framework.base.device import DeviceError
from trapline.framework.base.memory import SLOTS_MAX, Memory


def _memory():
    return Memory(FakeGuest(), CpuCore())


def _host(memory, address):
    """The host's address of one of DIF's, as machine code finds it."""
    number, offset = address - memory.base >> 32, address & 0xFFFF_FFFF
    start, size = memory.table[2 * number], memory.table[2 * number + 1]
    assert offset < size
    return start + offset


def test_the_table_of_regions_says_where_each_is():
    memory = _memory()
    region = memory.allocate(bytearray(b"hello"))
    assert ctypes.string_at(_host(memory, region.base), 5) == b"hello"
    number = region.base - memory.base >> 32
    memory.release(region)
    assert memory.table[2 * number : 2 * number + 2].tolist() == [0, 0]


def test_regions_beyond_the_table_are_regions_still():
    memory = _memory()
    regions = [memory.allocate(bytearray(8)) for _ in range(SLOTS_MAX + 1)]
    memory.write(regions[-1].base, b"\x05")
    assert memory.load(regions[-1].base, 8) == 5
    memory.release(regions[-1])


def test_interned_strings_stay_where_they_are():
    memory = _memory()
    first = memory.intern("first")
    host = _host(memory, first)
    for number in range(50_000):
        memory.intern(f"string {number}")
    assert _host(memory, first) == host
    assert memory.intern("first") == first
    assert memory.string(memory.intern("string 49999"), 256) == b"string 49999"
    long = "x" * 500_000
    assert memory.string(memory.intern(long), 1 << 20) == long.encode()


def test_blocks_of_a_consumer_lead_to_its_variables_and_buffers():
    bench = Bench("f:entry { x = arg0; this->y = arg1; trace(x + this->y); }")
    bench.fire(None, 5, 6)
    state = bench.device.runtime
    read = ctypes.c_uint64.from_address
    assert state.block == address_of(state.words)
    assert read(state.words[ConsumerWord.GLOBALS]).value == 5
    assert read(read(state.words[ConsumerWord.LOCALS]).value).value == 6
    buffer = read(state.words[ConsumerWord.BUFFERS]).value
    assert buffer == state.buffers[0].address
    end = read(buffer + 8 * BufferWord.OFFSET).value
    data = ctypes.string_at(read(buffer + 8 * BufferWord.DATA).value, end)
    assert data == bytes(state.buffers[0].data[:end])
    assert int.from_bytes(data[-8:], "little") == 11


def _i386():
    return Memory(FakeGuest(I386), CpuCore())


def test_pointers_of_32_bits_can_point_to_own_memory():
    memory = _i386()
    small, large, last = (memory.allocate(bytearray(size)) for size in (8, 3 << 20, 8))
    assert max(region.base + len(region.data) for region in (small, large, last)) < 0xC000_0000
    assert large.base + len(large.data) <= last.base
    memory.write(large.base + (1 << 19) - 2, b"\x01\x02\x03\x04")
    assert memory.load(large.base + (1 << 19) - 2, 4) == 0x0403_0201
    memory.write(large.base + (2 << 20), b"text\0")
    assert memory.string(large.base + (2 << 20), 99) == b"text"


def test_slots_are_given_out_again_and_end():
    memory = _i386()
    large, fence = memory.allocate(bytearray(2 << 20)), memory.allocate(bytearray(8))
    memory.release(large)
    small = memory.allocate(bytearray(8))
    assert small.base == large.base
    assert memory.allocate(bytearray(2 << 20)).base > fence.base
    assert memory.allocate(bytearray(1 << 20)).base == small.base + (1 << 19)
    half = SLOTS_MAX << memory.shift - 1
    memory.allocate(mmap.mmap(-1, half))
    with pytest.raises(DeviceError, match="no address is left"):
        memory.allocate(mmap.mmap(-1, half))
