"""Aggregations kept: merged, cleared, truncated, sorted, and given out as plain data."""

from __future__ import annotations

import math

import pytest

from tests.trapline.consumer.support import Aggregations, quantized, string, u8, u32, u64
from trapline.consumer.aggregations.aggregate import plain_value
from trapline.consumer.aggregations.order import Order
from trapline.framework.base.program import ActionKind
from trapline.options import Options

COUNT, SUM, AVG, MIN, MAX = ActionKind.COUNT, ActionKind.SUM, ActionKind.AVG, ActionKind.MIN, ActionKind.MAX
STDDEV, QUANTIZE, LQUANTIZE, LLQUANTIZE = (
    ActionKind.STDDEV,
    ActionKind.QUANTIZE,
    ActionKind.LQUANTIZE,
    ActionKind.LLQUANTIZE,
)
PARAMETER = 10 << 48 | 2 << 32


@pytest.mark.parametrize(
    ("action", "first", "second", "merged"),
    [
        (COUNT, [2], [3], [5]),
        (SUM, [2], [-3], [-1]),
        (SUM, [(1 << 63) - 1], [1], [-(1 << 63)]),
        (MIN, [2], [3], [2]),
        (MAX, [2], [3], [3]),
        (AVG, [1, 10], [2, 20], [3, 30]),
        (STDDEV, [1, 1, -1, 0], [1, 1, 1, 0], [2, 2, 0, 1]),
        (LQUANTIZE, [PARAMETER, 1, 0, 0, 2], [PARAMETER, 1, 1, 0, 0], [PARAMETER, 2, 1, 0, 2]),
        (LLQUANTIZE, [7, 1, 0], [7, 1, 1], [7, 2, 1]),
    ],
)
def test_snapshots_of_two_cpus_add_up(action, first, second, merged):
    aggregations = Aggregations()
    aggregations.add(1, action, first, cpu=0)
    aggregations.add(1, action, second, cpu=1)
    (entry,) = aggregations.aggregate
    assert entry.words == merged


def test_values_by_cpu_are_kept_when_asked_for():
    aggregations = Aggregations(per_cpu=True)
    aggregations.add(1, COUNT, [2], cpu=0)
    aggregations.add(1, COUNT, [3], cpu=1)
    aggregations.add(1, COUNT, [4], cpu=1)
    (entry,) = aggregations.aggregate
    assert entry.per_cpu == {0: [2], 1: [7]}
    assert entry.words == [9]


def test_equal_keys_of_different_variables_are_different_entries():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [1], u32(5))
    aggregations.add(2, COUNT, [1], u32(5))
    assert len(list(aggregations.aggregate)) == 2


def test_clear_keeps_keys_and_the_parameters_of_lquantize():
    aggregations = Aggregations()
    aggregations.add(1, LQUANTIZE, [PARAMETER, 1, 2, 3, 4], string("sh"))
    aggregations.aggregate.clear(1)
    (entry,) = aggregations.aggregate
    assert entry.words == [PARAMETER, 0, 0, 0, 0]


def test_clear_leaves_other_aggregations_alone():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [5])
    aggregations.add(2, COUNT, [6])
    aggregations.aggregate.clear(1)
    assert [entry.words for entry in aggregations.aggregate] == [[0], [6]]


def test_a_normal_of_zero_changes_nothing():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [5])
    aggregations.aggregate.normalize(1, 2)
    aggregations.aggregate.normalize(1, 0)
    (entry,) = aggregations.aggregate
    assert entry.normal == 2


def ranked(action, values, *, keys=None, **options):
    """Sort entries keyed 0, 1, 2 ... (or by `keys`) and give their numbers in order."""
    aggregations = Aggregations()
    for number, value in enumerate(values):
        aggregations.add(1, action, value, *(keys[number] if keys else [u32(number)]))
    found = Order(**options).sorted(aggregations.aggregate)
    return [list(aggregations.aggregate).index(entry) for entry in found]


def test_values_compare_signed():
    assert ranked(SUM, [[5], [-5], [0]]) == [1, 2, 0]


def test_averages_compare_by_the_average():
    assert ranked(AVG, [[1, 10], [100, 200], [2, 10]]) == [1, 2, 0]


def test_distributions_compare_by_weight_then_by_the_zero_bucket():
    values = [quantized(_4=1), quantized(_2=1, _0=5), quantized(_2=1, _0=9), quantized(m8=1)]
    assert ranked(QUANTIZE, values) == [3, 1, 2, 0]


def test_linear_distributions_weigh_what_lies_outside_by_the_nearest_value():
    # base 0, step 10, two levels: underflow weighs -1, overflow 21
    assert ranked(LQUANTIZE, [[PARAMETER, 0, 0, 2, 0], [PARAMETER, 1, 0, 0, 0], [PARAMETER, 0, 0, 0, 1]]) == [1, 0, 2]


def test_reverse_order_is_the_order_reversed():
    assert ranked(COUNT, [[1], [3], [2]], reverse=True) == [1, 2, 0]


def test_keys_compare_unsigned_and_left_to_right():
    keys = [[u32(-1), u8(0)], [u32(1), u8(2)], [u32(1), u8(1)]]
    assert ranked(COUNT, [[1], [2], [3]], keys=keys, by_key=True) == [2, 1, 0]


def test_a_key_position_rotates_the_keys():
    keys = [[u32(1), u8(3)], [u32(2), u8(1)], [u32(3), u8(2)]]
    assert ranked(COUNT, [[1], [1], [1]], keys=keys, by_key=True, key_position=1) == [1, 2, 0]
    assert ranked(COUNT, [[1], [1], [1]], keys=keys, by_key=True, key_position=9) == [0, 1, 2]


def test_strings_compare_by_bytes():
    keys = [[string("b")], [string("B")], [string("ab")]]
    assert ranked(COUNT, [[1], [1], [1]], keys=keys) == [1, 2, 0]


def test_the_order_of_joined_aggregations_goes_by_the_one_at_the_position():
    aggregations = Aggregations()
    for name, first, second in (("a", 1, 30), ("b", 2, 20), ("c", 3, 10)):
        aggregations.add(1, COUNT, [first], string(name, 4))
        aggregations.add(2, COUNT, [second], string(name, 4))

    def names(order):
        return [row.key.key_bytes()[0][:1] for row in order.joined(aggregations.aggregate, [1, 2])]

    assert names(Order()) == [b"a", b"b", b"c"]
    assert names(Order(position=1)) == [b"c", b"b", b"a"]
    assert names(Order(position=5)) == [b"a", b"b", b"c"]
    assert names(Order(by_key=True, position=1)) == [b"a", b"b", b"c"]


def test_the_order_is_read_from_the_options():
    options = Options()
    options.set("aggsortkey")
    options.set("aggsortrev")
    options.set("aggsortkeypos", "2")
    assert Order.of(options) == Order(by_key=True, reverse=True, key_position=2)


def test_joining_aggregations_without_any_entry_gives_no_rows():
    assert Order().joined(Aggregations().aggregate, [1, 2]) == []


def test_plain_values_are_numbers_or_counts_by_bucket():
    assert plain_value(COUNT, [7]) == 7
    assert plain_value(SUM, [-7], 2) == -3
    assert plain_value(AVG, [2, 9], 1) == 4
    assert plain_value(QUANTIZE, quantized(_0=1, _8=2)) == {0: 1, 8: 2}
    assert plain_value(LQUANTIZE, [PARAMETER, 1, 0, 3, 4]) == {-math.inf: 1, 10: 3, 20: 4}


def test_what_a_zero_looks_like_is_known_from_the_description_alone():
    aggregations = Aggregations()
    aggregations.declare(3, LQUANTIZE, 40, argument=PARAMETER)
    assert aggregations.aggregate.zero(3).words == [PARAMETER, 0, 0, 0, 0]
    assert aggregations.aggregate.zero(4) is None


def test_keys_of_eight_bytes_are_not_cut():
    assert ranked(COUNT, [[1], [1]], keys=[[u64(1 << 40)], [u64(1)]]) == [1, 0]
