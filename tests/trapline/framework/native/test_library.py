"""The functions that machine code calls, and a consumer that turns to them while it traces."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.displaced.cpu_core import CpuCore
from emu.isa import I386, X86_64
from emu.native import available
from emu.support.plain import address_of, words
from tests.support.fake_guest import FakeGuest
from tests.support.some import some
from tests.trapline.framework.support import Bench
from trapline.framework.base.blocks import AggregationWord, ConsumerWord, DynamicWord
from trapline.framework.base.dynvars import CHUNK_SIZE, DynamicVariables, slot
from trapline.framework.base.memory import SLOTS_MAX, Memory

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

if available():
    from trapline.framework.native.consumer import share
    from trapline.framework.native.dif.dynvars import HEADER, SharedDynamicVariables, key_bytes
    from trapline.framework.native.library import symbols

MASK = (1 << 64) - 1


def _function(name, parameters):
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *(parameters * (ctypes.c_uint64,)))(symbols()[name])


@pytest.mark.parametrize("isa", [X86_64, I386], ids=lambda isa: isa.name)
@pytest.mark.parametrize("length", [100, 1_300_000])  # some slots of 32 bits
def test_own_memory_is_found_where_it_is_and_no_other(isa, length):
    memory, own = Memory(FakeGuest(isa), CpuCore()), _function("own", 3)
    regions = address_of(memory.table)
    region = memory.allocate(bytearray(length))
    steps = (0, 1, 50, length - 1, length, length + 1, 1 << 31, (1 << 19) - 1, 1 << 19)
    places = [(region.base + offset, size) for offset in steps for size in (0, 1, 50, length + 1)]
    places += [(0, 1), (memory.base - 1, 1), (MASK, 1), (region.base, MASK), (region.base + length - 1, MASK)]
    places += [(memory.base + (SLOTS_MAX << memory.shift), 1), (memory.base + (77 << memory.shift), 1)]
    for address, size in some(places):
        inside = region.base <= address and address + size <= region.base + length
        expected = region.host + address - region.base if inside else 0
        assert own(regions, address, size) == expected, (hex(address), size)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, MASK) | st.binary(min_size=1, max_size=60), max_size=8), st.none() | st.integers(0, MASK)
)
def test_keys_are_the_bytes_that_python_makes_of_them(parts, thread):
    memory, key = Memory(FakeGuest(), CpuCore()), _function("key", 7)
    shared = SharedDynamicVariables(DynamicVariables(memory, 1 << 12, CHUNK_SIZE, 1))
    stack = words(2 * 9)
    for place, part in enumerate(parts):
        entry = (memory.allocate(bytearray(part)).base, len(part)) if isinstance(part, bytes) else (part, 0)
        stack[2 * place], stack[2 * place + 1] = entry
    expected = key_bytes((*parts, slot(0x501), *(() if thread is None else (thread,))))
    size = key(
        shared.address, address_of(memory.table), address_of(stack), len(parts), 1, thread is not None, thread or 0
    )
    if HEADER + len(expected) > CHUNK_SIZE:
        assert size == 0
    else:
        assert ctypes.string_at(shared.words[DynamicWord.KEY], size) == expected


def test_what_is_not_dtraces_own_has_no_key_in_machine_code():
    memory, key = Memory(FakeGuest(), CpuCore()), _function("key", 7)
    shared = SharedDynamicVariables(DynamicVariables(memory, 1 << 12, CHUNK_SIZE, 1))
    stack = words(2)
    for address, size in ((0xFFFF_8000_0000_0000, 8), (memory.intern("x"), MASK), (memory.intern("x"), MASK >> 1)):
        stack[0], stack[1] = address, size
        assert key(shared.address, address_of(memory.table), address_of(stack), 1, 0, 0, 0) == 0


PROGRAM = """
f:entry { @a[probefunc, arg0 % 7] = count(); @b[arg0] = quantize(arg1); @c = stddev(arg1); }
f:entry /!seen[arg0 % 50, probename]/ { seen[arg0 % 50, probename] = arg1 + 1; trace(arg0); }
f:entry /arg0 % 3 == 0/ { trace(seen[arg0 % 50, probename]); seen[arg0 % 50, probename] = 0; self->last = arg1; }
g:entry { trace(self->last); self->last = 0; names[arg0] = "some name"; trace(names[arg0 % 8]); }
"""


def _traced(when, **options):
    bench = Bench(PROGRAM, bufsize=1 << 20, **options)
    for number in range(300):
        if number == when:
            share(bench.device.runtime)
        bench.fire(bench.f if number % 4 else bench.g, number * 13 % 97, number * number)
    return bench.records(), bench.device.aggregation_snapshot(0), bench.device.status(), bench.device.runtime


@pytest.mark.parametrize(("dynvarsize", "aggsize", "least"), [(1 << 18, 1 << 18, 150), (4000, 3000, 9)])
@pytest.mark.parametrize("when", [0, 40, 299])
def test_a_consumer_may_go_native_while_it_traces(when, dynvarsize, aggsize, least):
    options = {"dynvarsize": dynvarsize, "aggsize": aggsize}
    *expected, _ = _traced(None, **options)
    *found, state = _traced(when, **options)
    assert found == expected
    assert len(found[0]) > least
    addresses = ctypes.c_uint64.from_address(state.words[ConsumerWord.AGGREGATIONS])
    assert addresses.value == state.aggregation_buffers[0].address
    assert state.aggregation_buffers[0].words[AggregationWord.SIZE] == aggsize
    assert state.words[ConsumerWord.DYNAMIC] == state.variables.dynamic.address
