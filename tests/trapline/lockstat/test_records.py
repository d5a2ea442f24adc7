"""Records are merged according to the flags, and no count is lost."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.lockstat.records import Coalescing, LockRecord, coalesce, in_order

records = st.lists(
    st.builds(
        LockRecord,
        event=st.integers(0, 2),
        lock=st.integers(0, 40),
        caller=st.integers(100, 140),
        count=st.integers(1, 9),
        time=st.integers(0, 1000),
        histogram=st.dictionaries(st.integers(0, 5), st.integers(1, 9)).map(Counter),
    ),
    max_size=30,
)
flags = ("locks", "functions", "any_caller", "any_lock")
each_choice = pytest.mark.parametrize("chosen", [*product((False, True), repeat=len(flags))])


def start(address):
    """Give the address of the symbol an address is in: ten bytes each."""
    return address - address % 10


def totals(found):
    count, time, histogram = Counter(), Counter(), {}
    for record in found:
        count[record.event] += record.count
        time[record.event] += record.time
        histogram[record.event] = histogram.get(record.event, Counter()) + record.histogram
    return count, time, histogram


@each_choice
@given(found=records)
@settings(max_examples=20, deadline=None)
def test_nothing_is_lost_and_nothing_stays_apart_that_should_not(chosen, found):
    how = Coalescing(**dict(zip(flags, chosen, strict=True)))
    made = coalesce(found, how, start)
    assert totals(made) == totals(found)
    if how.any_caller:
        keys = [(record.event, record.lock) for record in made]
    elif how.any_lock:
        keys = [(record.event, record.caller) for record in made]
    elif how.locks or how.functions:
        keys = [(record.event, record.lock, record.caller) for record in made]
    else:
        assert made == found
        return
    assert len(set(keys)) == len(keys) or (how.any_caller and how.any_lock)


@given(found=records)
@settings(max_examples=20, deadline=None)
def test_records_are_in_the_order_of_events_and_then_of_counts_or_times(found):
    for by_time in (False, True):
        made = in_order(found, by_time=by_time)
        assert sorted(map(repr, made)) == sorted(map(repr, found))
        keys = [(record.event, -(record.time if by_time else record.count)) for record in made]
        assert keys == sorted(keys)


def test_the_hottest_caller_represents_all():
    found = [LockRecord(1, 7, 100, count=2), LockRecord(1, 7, 200, count=5), LockRecord(1, 7, 300, count=1)]
    assert coalesce(found, Coalescing(any_caller=True), start) == [LockRecord(1, 7, 200, count=8)]


def test_every_function_on_the_stack_generates_an_event():
    found = [
        LockRecord(1, 7, 100, count=2, time=10, stack=(200, 300)),
        LockRecord(1, 7, 200, count=1, time=5, stack=(300,)),
    ]
    made = coalesce(found, Coalescing(generated=True), start)
    assert {(record.caller, record.count, record.time) for record in made} == {(100, 2, 10), (200, 3, 15), (300, 3, 15)}
    assert all(record.stack == () for record in made)
