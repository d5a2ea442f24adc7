"""Aggregation in machine code does what Python's does: entries, order, values, drops."""

from __future__ import annotations

import ctypes
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.native import available
from emu.native.builder import Module
from emu.native.link import Linked
from tests.support.some import some
from trapline.framework.base.program import ActionKind
from trapline.framework.buffers.aggbuffer import AggregationBuffer, Outcome
from trapline.framework.buffers.aggfuncs import aggregating_function

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

if available():
    from trapline.framework.native.aggregate import SharedAggregationBuffer, apply

WORDS = st.integers(0, (1 << 64) - 1) | st.integers(0, 300) | st.sampled_from([1 << 63, (1 << 63) - 1, (1 << 64) - 1])
SIMPLE = [kind for kind in ActionKind if kind.is_aggregation and kind < ActionKind.LQUANTIZE]
# step, levels, base
LINEAR = [(1, 1, 0), (7, 20, -5), (65535, 65, 1 << 31), (3, 2, (1 << 31) - 1)]
# factor, low, high, steps
LOG_LINEAR = [(10, 0, 6, 20), (2, 0, 62, 2), (2, 3, 5, 4), (10, 17, 19, 10), (10, 25, 30, 10), (16, 0, 15, 256)]


def _functions():
    for kind in SIMPLE:
        yield kind, 0
    for step, levels, base in LINEAR:
        yield ActionKind.LQUANTIZE, step << 48 | levels << 32 | base & 0xFFFF_FFFF
    for factor, low, high, steps in LOG_LINEAR:
        yield ActionKind.LLQUANTIZE, factor << 48 | low << 32 | high << 16 | steps


def _native(kind, argument):
    """`void apply(value's address, number, increment)`."""
    module = Module()
    function = module.function("apply", 3)
    apply(function, kind, argument, *function.parameters)
    function.ret()
    linked = Linked(module.compiled("test"))
    made = ctypes.CFUNCTYPE(None, *(3 * (ctypes.c_uint64,)))(linked.address("apply"))
    made.keeps = linked
    return made


@pytest.mark.parametrize(("kind", "argument"), list(_functions()), ids=str)
def test_values_are_those_of_python(kind, argument):
    native = _native(kind, argument)
    function = aggregating_function(kind, argument)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(WORDS, WORDS), max_size=20))
    def same(numbers):
        start = struct.pack("<Q", function.initial) + bytes(function.size - 8)
        ours, theirs = bytearray(start), bytearray(start)
        address = ctypes.addressof(ctypes.c_char.from_buffer(ours))
        for number, increment in numbers:
            native(address, number, increment)
            function.apply(theirs, 0, number, increment)
        assert ours == theirs

    same()


def test_numbers_around_powers_have_the_buckets_of_python():
    edges = {value + d & (1 << 64) - 1 for base in (2, 10, 16) for e in range(64) for d in (-1, 0, 1)
             for value in (base**e, -(base**e)) if abs(value) <= 1 << 63}  # fmt: skip
    for kind, argument in some(_functions()):
        if kind < ActionKind.QUANTIZE:
            continue
        native, function = _native(kind, argument), aggregating_function(kind, argument)
        ours, theirs = bytearray(function.size), bytearray(function.size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(ours))
        for number in sorted(edges):
            native(address, number, number % 3 + 1)
            function.apply(theirs, 0, number, number % 3 + 1)
        assert ours == theirs, (kind, hex(argument))


KEYS = st.builds(
    lambda words, tail: struct.pack("<I", tail) + struct.pack(f"<{len(words)}Q", *words),
    st.lists(st.sampled_from([0, 1, 1 << 63, 1 << 32, 77]), max_size=12),
    st.integers(1, 3),
)
KINDS = st.sampled_from([(ActionKind.COUNT, 0), (ActionKind.SUM, 0), (ActionKind.MIN, 0), (ActionKind.AVG, 0),
                         (ActionKind.QUANTIZE, 0), (ActionKind.LQUANTIZE, 1 << 48 | 5 << 32)])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    size=st.sampled_from([0, 1, 64, 128, 200, 512, 1100, 2000, 5000, 1 << 14]),
    steps=st.lists(st.tuples(KEYS, KINDS, st.integers(1, 5), WORDS) | st.none(), max_size=60),
)
def test_any_sequence_leaves_the_same_entries_in_the_same_order(size, steps):
    buffers = [AggregationBuffer(size), SharedAggregationBuffer(size)]
    for step in [*steps, None]:
        if step is None:
            ours, theirs = (buffer.take() for buffer in buffers)
            assert ours == theirs
            continue
        key, (kind, argument), number, value = step
        function = aggregating_function(kind, argument)
        places = [buffer.locate(key, kind, number, function) for buffer in buffers]
        assert places[0] == places[1]
        if places[0] > 0:
            for buffer in buffers:
                function.apply(buffer.data, places[0], value, 1)


def test_many_keys_of_any_length_are_kept_apart():
    ours, theirs = AggregationBuffer(1 << 20), SharedAggregationBuffer(1 << 20)
    function = aggregating_function(ActionKind.COUNT, 0)
    for number in range(6000):
        key = struct.pack("<I", 1) + (b"%d" % (number % 2500)).ljust(8 * (1 + number % 7), b"\0")
        for buffer in (ours, theirs):
            function.apply(buffer.data, buffer.locate(key, ActionKind.COUNT, 1, function), 0, 1)
    assert ours.take() == theirs.take()
    assert theirs.take() == ((), 0)


def test_a_key_of_another_function_is_refused():
    buffer = SharedAggregationBuffer(1 << 12)
    count, average = (aggregating_function(kind, 0) for kind in (ActionKind.COUNT, ActionKind.AVG))
    assert buffer.locate(b"abcd", ActionKind.COUNT, 1, count) > 0
    assert buffer.locate(b"abcd", ActionKind.SUM, 1, count) == -Outcome.OTHER
    assert buffer.locate(b"abcd", ActionKind.AVG, 1, average) == -Outcome.OTHER
