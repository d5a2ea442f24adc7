"""Dynamic variables in machine code are those of Python: found, stored, dropped, cleaned alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.displaced.cpu_core import CpuCore
from emu.native import available
from tests.support.fake_guest import FakeGuest
from trapline.framework.base.dynvars import CHUNK_SIZE, HASH_ENTRY, DynamicVariables, key_space
from trapline.framework.base.memory import Memory

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

if available():
    from trapline.framework.native.dif.dynvars import HEADER, SharedDynamicVariables, key_bytes

PARTS = st.integers(0, 4) | st.sampled_from([1 << 63, (1 << 64) - 1]) | st.binary(min_size=1, max_size=20)
KEYS = st.lists(PARTS, min_size=1, max_size=4).map(tuple)
FEW_KEYS = st.sampled_from([(number,) for number in range(12)])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["find", "store", "store", "store", "remove", "remove", "clean", "write"]),
        FEW_KEYS | KEYS,
        st.sampled_from([8, 8, 8, 16, 100, 190, 300]),
        st.integers(0, 2),
    ),
    max_size=80,
)


def _space(chunks, cpus, chunk_size=CHUNK_SIZE):
    """Dynamic variables in a framework of their own: the addresses of several are the same."""
    return DynamicVariables(Memory(FakeGuest(), CpuCore()), chunks * (chunk_size + HASH_ENTRY), chunk_size, cpus)


def _do(space, step, key, size, cpu):
    """Return all that can be noticed of an operation."""
    if step == "find":
        return space.find(key)
    if step == "store":
        address = space.find_or_create(key, size, cpu)
        return address, space.drops, space.dirty_drops
    if step == "remove":
        return space.remove(key, cpu)
    if step == "clean":
        return space.clean()
    offset = 40 * size + cpu
    return space.memory.can_store(space.region.base + offset, size)


@settings(max_examples=200, deadline=None)
@given(chunks=st.integers(0, 14), cpus=st.integers(1, 3), before=STEPS, after=STEPS)
def test_any_sequence_of_operations_is_the_same(chunks, cpus, before, after):
    ours, theirs = _space(chunks, cpus), _space(chunks, cpus)
    for step, key, size, cpu in before:
        assert _do(ours, step, key, size, cpu % cpus) == _do(theirs, step, key, size, cpu % cpus)
    theirs = SharedDynamicVariables(theirs)
    for step, key, size, cpu in after:
        assert _do(ours, step, key, size, cpu % cpus) == _do(theirs, step, key, size, cpu % cpus)
    assert _do(ours, "store", b"last", 8, 0) == _do(theirs, "store", b"last", 8, 0)


def test_what_is_stored_stays_when_machine_code_takes_over():
    space = _space(40, 1)
    keys = [(number, b"x" * (1 + number % 9)) for number in range(30)]
    for number, key in enumerate(keys):
        space.memory.write(space.find_or_create(key, 8, 0), number.to_bytes(8, "little"))
    for key in keys[::3]:
        space.remove(key, 0)
    shared = SharedDynamicVariables(space)
    for number, key in enumerate(keys):
        address = shared.find(key)
        assert (address == 0) == (number % 3 == 0)
        if address:
            assert space.memory.load(address, 8) == number


@given(KEYS)
def test_a_key_takes_the_space_that_is_accounted_for_it(key):
    assert HEADER + len(key_bytes(key)) == key_space(key)


@given(KEYS, KEYS)
def test_two_keys_are_never_the_same_bytes(one, other):
    assert (key_bytes(one) == key_bytes(other)) == (one == other)
