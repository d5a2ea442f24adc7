"""Distributions: buckets, blocks, bars."""

from __future__ import annotations

import math

import pytest

from tests.trapline.consumer.support import exact, quantized
from trapline.consumer.aggregations.distribution import show_distribution, split
from trapline.framework.base.program import ActionKind

QUANTIZE, LQUANTIZE, LLQUANTIZE = ActionKind.QUANTIZE, ActionKind.LQUANTIZE, ActionKind.LLQUANTIZE


def lquantize(base, levels, step, counts):
    parameter = step << 48 | levels << 32 | base & 0xFFFF_FFFF
    return [parameter, *(counts.get(index, 0) for index in range(levels + 2))]


def llquantize(factor, low, high, steps, counts, size):
    return [factor << 48 | low << 32 | high << 16 | steps, *(counts.get(index, 0) for index in range(size))]


def test_a_quantize_block_shows_one_bucket_more_on_each_side():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                       1 |                                         0        $
                       2 |@@@@@@@@@@                               1        $
                       4 |@@@@@@@@@@@@@@@@@@@@                     2        $
                       8 |                                         0        $
                      16 |@@@@@@@@@@                               1        $
                      32 |                                         0        $
        """)
    assert show_distribution(QUANTIZE, quantized(_2=1, _4=2, _16=1)) == expected


def test_a_quantize_block_without_data_shows_the_buckets_around_zero():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                      -1 |                                         0        $
                       0 |                                         0        $
                       1 |                                         0        $
        """)
    assert show_distribution(QUANTIZE, quantized()) == expected


def test_negative_counts_alone_draw_to_the_left_of_the_axis():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                       0                                         | 0        $
                       1           @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -3       $
                       2                               @@@@@@@@@@| -1       $
                       4                                         | 0        $
        """)
    assert show_distribution(QUANTIZE, quantized(_1=-3, _2=-1)) == expected


def test_counts_of_both_signs_draw_from_the_middle():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                      -2                     |                     0        $
                      -1      @@@@@@@@@@@@@@@|                     -3       $
                       0                     |                     0        $
                       1                     |@@@@@                1        $
                       2                     |                     0        $
        """)
    assert show_distribution(QUANTIZE, quantized(m1=-3, _1=1)) == expected


def test_the_first_and_last_bucket_end_the_table():
    rows = show_distribution(QUANTIZE, [1, *[0] * 125, 1]).splitlines()[2:]
    assert rows[0].split()[0] == str(-(1 << 62))
    assert rows[-1].split()[0] == str(1 << 62)


def test_lquantize_names_what_lies_outside():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                     < 0 |@@@@@@@@@@                               1        $
                       0 |@@@@@@@@@@                               1        $
                      10 |                                         0        $
                      20 |@@@@@@@@@@                               1        $
                   >= 30 |@@@@@@@@@@                               1        $
        """)
    assert show_distribution(LQUANTIZE, lquantize(0, 3, 10, {0: 1, 1: 1, 3: 1, 4: 1})) == expected


def test_lquantize_without_data_shows_its_first_three_rows():
    rows = show_distribution(LQUANTIZE, lquantize(-5, 4, 5, {})).splitlines()[2:]
    assert [row[:16].strip() for row in rows] == ["< -5", "-5", "0"]


def test_llquantize_has_steps_within_each_magnitude():
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                     < 1 |                                         0        $
                       1 |@@@@@@@@@@@@@@@@@@@@                     1        $
                       2 |                                         0        $
                       3 |                                         0        $
                       4 |                                         0        $
                       5 |                                         0        $
                       6 |                                         0        $
                       7 |                                         0        $
                       8 |                                         0        $
                       9 |                                         0        $
                      10 |                                         0        $
                      20 |@@@@@@@@@@@@@@@@@@@@                     1        $
                      30 |                                         0        $
        """)
    assert show_distribution(LLQUANTIZE, llquantize(10, 0, 2, 10, {1: 1, 11: 1}, 29)) == expected


def test_the_last_row_of_llquantize_is_the_overflow():
    rows = show_distribution(LLQUANTIZE, llquantize(10, 0, 2, 10, {28: 7}, 29)).splitlines()[2:]
    assert [row[:16].strip() for row in rows] == ["900", ">= 1000"]


def test_a_normal_divides_the_counts_but_not_the_bars():
    rows = show_distribution(QUANTIZE, quantized(_1=10, _2=30), normal=10).splitlines()[3:5]
    assert rows == [
        "               1 |@@@@@@@@@@                               1        ",
        "               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        ",
    ]


def test_zoom_makes_the_longest_bar_95_percent():
    rows = show_distribution(QUANTIZE, quantized(_1=1, _2=1), zoom=True).splitlines()[3:5]
    assert [row.count("@") for row in rows] == [38, 38]


def test_utf8_bars_have_eighths():
    row = show_distribution(QUANTIZE, quantized(_1=1, _2=2), utf8=True).splitlines()[3]
    assert row == "               1 |" + "█" * 13 + "▎" + " " * 26 + " 1        "


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 11])
def test_equal_bars_are_as_long_as_rounding_allows(count):
    block = show_distribution(LQUANTIZE, lquantize(0, count, 1, dict.fromkeys(range(1, count + 1), 1)))
    lengths = [row.count("@") for row in block.splitlines()[2:] if "@" in row]
    assert lengths == [int(40 / count + 0.5)] * count


def test_the_edges_of_buckets_are_their_lowest_values():
    buckets, counts = split(LQUANTIZE, lquantize(0, 2, 10, {1: 5}))
    assert buckets.edges == (-math.inf, 0, 10, 20)
    assert list(counts) == [0, 5, 0, 0]
