"""Buffers, aggregations, dynamic variables and speculations: kept and lost data, and counts."""

from __future__ import annotations

import pytest

from tests.trapline.framework.support import Bench, trace
from trapline.framework.base.device import DeviceError
from trapline.framework.probe.settings import Settings

RING, FILL = 0, 1


def aggregated(bench, device=None):
    """The aggregation's entries as {key bytes: first value}."""
    device = device or bench.device
    found = {}
    for entry in device.aggregation_snapshot(0).entries:
        description = device.aggregation(int.from_bytes(entry[:4], "little"))
        value = description.records[-1]
        keys = tuple(
            int.from_bytes(entry[record.offset : record.offset + record.size], "little")
            for record in description.records[1:-1]
        )
        found[keys] = int.from_bytes(entry[value.offset : value.offset + 8], "little", signed=True)
    return found


def test_a_full_buffer_drops_and_counts():
    bench = Bench(trace("arg0"), bufsize=24 * 3)
    for value in range(5):
        bench.fire(bench.f, value)
    snapshot = bench.device.buffer_snapshot(0)
    assert len(snapshot.data) == 24 * 3
    assert snapshot.drops == 2
    bench.fire(bench.f, 9)
    assert bench.numbers() == [9]


def test_a_ring_keeps_the_newest():
    bench = Bench(trace("arg0"), bufsize=24 * 4, bufpolicy=RING)
    for value in range(10):
        bench.fire(bench.f, value)
    bench.device.stop()
    assert bench.numbers() == [6, 7, 8, 9]
    assert bench.records() == []


def test_a_fill_buffer_ends_with_the_first_record_that_does_not_fit_and_keeps_room_for_end():
    bench = Bench(trace("arg0") + trace("99", "END"), bufsize=24 * 4 + 16, bufpolicy=FILL)
    for value in range(10):
        bench.fire(bench.f, value)
    assert bench.device.status().filled == 1
    assert bench.guest.interrupts == 1
    bench.device.stop()
    assert bench.numbers() == [0, 1, 2, 99]


@pytest.mark.parametrize(("size", "errno"), [(4, "ENOSPC"), (20, "E2BIG")])
def test_a_buffer_that_cannot_hold_anything_is_refused(size, errno):
    bench = Bench()
    with pytest.raises(DeviceError) as caught:
        bench.open(trace("1", "END"), bufsize=size, bufpolicy=FILL)
    assert caught.value.errno_name == errno


def test_sizes_beyond_memory_are_lowered_and_told():
    bench = Bench(trace("1"), bufsize=1 << 40)
    assert bench.device.option("bufsize") == 1 << 28


@pytest.mark.parametrize("nspec", [2_000_000_000, 66_000])
def test_more_speculations_than_memory_are_refused(nspec):
    with pytest.raises(DeviceError, match="no memory for") as caught:
        Bench().open(trace("1"), nspec=nspec)
    assert caught.value.errno_name == "ENOMEM"


def test_buffers_of_many_speculations_are_made_smaller_unless_that_is_forbidden():
    settings = Settings()
    settings.values.update(nspec=2_000, specsize=1 << 30)
    settings.fit(0)
    assert 2_000 * settings.values["specsize"] <= 1 << 28 < 4_000 * settings.values["specsize"]
    settings.values.update(specsize=1 << 20, bufresize=1)
    with pytest.raises(DeviceError, match="no memory for 2000 speculations of 1048576 bytes"):
        settings.fit(0)


def test_options_are_fixed_once_tracing_has_begun():
    bench = Bench(trace("1"))
    with pytest.raises(DeviceError):
        bench.device.set_option("bufsize", 1)


@pytest.mark.parametrize(
    ("function", "value"),
    [("count()", 4), ("sum(arg0)", 12), ("min(arg0)", -2), ("max(arg0)", 9)],
)
def test_aggregating_functions(function, value):
    bench = Bench(f"f:entry {{ @ = {function}; }}")
    for number in (5, -2, 9, 0):
        bench.fire(bench.f, number & (1 << 64) - 1)
    assert aggregated(bench) == {(): value}


def test_aggregations_have_a_value_for_every_key_and_start_anew_after_a_snapshot():
    bench = Bench("f:entry { @[arg0, (char)arg1] = sum(arg2); }")
    for key, small, value in ((1, 2, 10), (1, 3, 20), (1, 2, 30)):
        bench.fire(bench.f, key, small, value)
    assert aggregated(bench) == {(1, 2): 40, (1, 3): 20}
    assert aggregated(bench) == {}


def test_quantize_counts_in_powers_of_two_and_takes_an_increment():
    bench = Bench("f:entry { @ = quantize(arg0, arg1); }")
    for value, increment in ((0, 1), (1, 2), (5, 3), (7, 4), (-3 & (1 << 64) - 1, 5)):
        bench.fire(bench.f, value, increment)
    (entry,) = bench.device.aggregation_snapshot(0).entries
    value = bench.device.aggregation(1).records[-1]
    buckets = [int.from_bytes(entry[value.offset + 8 * n : value.offset + 8 * n + 8], "little") for n in range(127)]
    assert {place: count for place, count in enumerate(buckets) if count} == {63: 1, 64: 2, 66: 7, 61: 5}


def test_strings_as_keys_are_the_same_whatever_lies_behind_their_nul():
    bench = Bench('f:entry { @[arg0 ? "long string" : "ab"] = count(); }')
    for value in (1, 0, 1, 0, 0):
        bench.fire(bench.f, value)
    assert sorted(aggregated(bench).values()) == [2, 3]


def test_an_aggregation_buffer_that_is_full_drops_and_counts():
    bench = Bench("f:entry { @[arg0] = count(); }", aggsize=512)
    for value in range(100):
        bench.fire(bench.f, value)
    snapshot = bench.device.aggregation_snapshot(0)
    assert 0 < len(snapshot.entries) < 100
    assert snapshot.drops == 100 - len(snapshot.entries)


def test_thread_locals_belong_to_their_thread():
    bench = Bench("f:entry { self->x = arg0; } g:entry { trace((int64_t)self->x); }")
    bench.fire(bench.f, 5)
    bench.guest.become(tid=7)
    bench.fire(bench.g)
    bench.fire(bench.f, 6)
    bench.fire(bench.g)
    bench.guest.become(tid=100_001)
    bench.fire(bench.g)
    assert bench.numbers() == [0, 6, 5]


def test_dynamic_variables_without_room_are_dropped_and_come_back_after_cleaning():
    bench = Bench("f:entry { a[arg0] = 1; } g:entry { a[arg0] = 0; }", dynvarsize=2000)
    for value in range(20):
        bench.fire(bench.f, value)
    drops = bench.device.status().dyndrops
    assert drops > 0
    for value in range(20):
        bench.fire(bench.g, value)
    bench.guest.time += 1_000_000_000
    bench.fire(bench.f, 1)
    assert bench.device.status().dyndrops == drops


SPECULATE = """
f:entry { self->s = speculation(); speculate(self->s); trace((int64_t)arg0); }
g:entry /arg0/ { commit(self->s); }
g:entry /!arg0/ { discard(self->s); }
"""


def test_a_speculation_is_seen_when_it_is_committed_with_the_time_of_then():
    bench = Bench(SPECULATE)
    bench.fire(bench.f, 11)
    assert bench.records() == []
    bench.guest.time = 5_000
    bench.fire(bench.g, 1)
    ((epid, time, data),) = bench.records()
    assert (epid, time, int.from_bytes(data[4:12], "little")) == (1, 5_000, 11)


def test_a_speculation_that_is_discarded_leaves_nothing():
    bench = Bench(SPECULATE)
    bench.fire(bench.f, 11)
    bench.fire(bench.g, 0)
    assert bench.records() == []
    bench.fire(bench.f, 12)
    bench.fire(bench.g, 1)
    assert bench.numbers() == [12]


def test_without_a_free_speculation_the_failure_is_counted():
    bench = Bench(SPECULATE)
    bench.fire(bench.f, 1)
    bench.fire(bench.f, 2)
    assert bench.device.status().specdrops_unavail == 1


def test_tracemem_shows_no_more_than_its_third_argument():
    bench = Bench("f:entry { tracemem(arg0, 8, arg1); }")
    where = bench.guest.poke(0xFFFF_FFFF_8000_2000, bytes(range(1, 9)))
    bench.fire(bench.f, where, 3)
    ((_, _, data),) = bench.records()
    assert data[-8:] == bytes((1, 2, 3, 0, 0, 0, 0, 0))
    # The consumer reads how much to show.
    assert int.from_bytes(data[-16:-8], "little") == 3
