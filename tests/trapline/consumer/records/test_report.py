"""Aggregations as the user sees them: printa() and the final dump."""

from __future__ import annotations

from tests.support.fake_guest import KERNEL
from tests.trapline.consumer.support import Aggregations, exact, quantized, stack, string, u8, u16, u32, u64
from trapline.framework.base.program import ActionKind
from trapline.framework.device.printf import parse_format

COUNT, SUM, AVG, MIN = ActionKind.COUNT, ActionKind.SUM, ActionKind.AVG, ActionKind.MIN
QUANTIZE, LQUANTIZE, STDDEV = ActionKind.QUANTIZE, ActionKind.LQUANTIZE, ActionKind.STDDEV


def by_name(**counts):
    aggregations = Aggregations()
    for name, number in counts.items():
        aggregations.add(1, COUNT, [number], string(name))
    return aggregations


def test_a_count_by_name_has_the_name_in_50_columns_and_the_count_in_16():
    text = by_name(sh=7, init=1).report.unprinted()
    assert text == (
        "  init                                                              1\n"
        "  sh                                                                7\n"
    )


def test_an_aggregation_without_keys_is_its_value_alone():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [42])
    assert aggregations.report.unprinted() == "               42\n"


def test_integer_keys_have_the_columns_of_their_sizes():
    aggregations = Aggregations()
    aggregations.add(1, SUM, [-3], u8(255), u16(7), u32(-1), u64(9))
    assert aggregations.report.unprinted() == " 255     7       -1                9               -3\n"


def test_values_ascend_and_equal_values_go_by_key():
    text = by_name(b=2, a=2, c=1).report.unprinted()
    assert [line.split()[0] for line in text.splitlines()] == ["c", "a", "b"]


def test_an_average_is_truncated_toward_zero():
    aggregations = Aggregations()
    aggregations.add(1, AVG, [2, -7])
    assert aggregations.report.unprinted() == "               -3\n"


def test_an_average_of_nothing_is_zero():
    aggregations = Aggregations()
    aggregations.add(1, AVG, [0, 0])
    assert aggregations.report.unprinted() == "                0\n"


def test_a_standard_deviation_is_an_integer_square_root():
    aggregations = Aggregations()
    values = [2, 4, 4, 4, 5, 5, 7, 9]
    aggregations.add(1, STDDEV, [len(values), sum(values), sum(v * v for v in values), 0])
    assert aggregations.report.unprinted() == "                2\n"


def test_squares_of_a_standard_deviation_use_128_bits():
    aggregations = Aggregations()
    value = 1 << 40
    squares = 2 * value * value
    aggregations.add(1, STDDEV, [2, 0, squares & (1 << 64) - 1, squares >> 64])
    assert aggregations.report.unprinted() == f" {value:16d}\n"


def test_a_normal_divides_the_pattern_taken_as_unsigned():
    aggregations = Aggregations()
    aggregations.add(1, SUM, [-10])
    aggregations.aggregate.normalize(1, 10)
    assert aggregations.report.unprinted() == f" {((1 << 64) - 10) // 10:16d}\n"


def test_a_distribution_follows_its_keys():
    aggregations = Aggregations()
    aggregations.add(1, QUANTIZE, quantized(_1=1), string("sh"))
    expected = exact("""
        $
                   value  ------------- Distribution ------------- count    $
                       0 |                                         0        $
                       1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
                       2 |                                         0        $
        $
        """)
    assert aggregations.report.unprinted() == f"  {'sh':<50}{expected}"


def test_a_stack_as_key_puts_the_value_on_its_own_line():
    aggregations = Aggregations()
    frames = stack(KERNEL + 0x2004, KERNEL + 0x1000)
    aggregations.add(1, COUNT, [3], (ActionKind.STACK, frames, {"argument": 20}))
    expected = exact("""
        $
                      kernel`read_random+0x4$
                      kernel`sys_read$
                        3$
        """)
    assert aggregations.report.unprinted() == expected


def test_symbol_keys_are_one_entry_for_all_addresses_of_the_symbol():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [1], (ActionKind.SYM, u64(KERNEL + 0x2004)))
    aggregations.add(1, COUNT, [2], (ActionKind.SYM, u64(KERNEL + 0x2010)))
    assert aggregations.report.unprinted() == f"  {'kernel`read_random':<50} {3:16d}\n"


def test_module_keys_are_one_entry_for_the_module():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [1], (ActionKind.MOD, u64(KERNEL + 0x1004)))
    aggregations.add(1, COUNT, [2], (ActionKind.MOD, u64(KERNEL + 0x2010)))
    assert aggregations.report.unprinted() == f"  {'kernel':<50} {3:16d}\n"


def test_user_symbol_and_module_keys_have_the_base_name_of_the_object():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [1], (ActionKind.USYM, u64(42) + u64(0x401004)))
    aggregations.add(2, COUNT, [2], (ActionKind.UMOD, u64(42) + u64(0x401004)))
    aggregations.add(3, COUNT, [3], (ActionKind.UADDR, u64(42) + u64(0x401004)))
    names = [line.split()[0] for line in aggregations.report.unprinted().splitlines()]
    assert names == ["sh`main", "sh", "sh`main+0x4"]


def test_printa_begins_with_an_empty_line():
    assert by_name(sh=1).report.default([1]).startswith("\n  sh ")


def test_what_printa_showed_is_left_out_at_the_end():
    aggregations = by_name(sh=1)
    aggregations.add(2, COUNT, [5])
    aggregations.report.default([1])
    assert aggregations.report.unprinted() == "                5\n"


def test_several_aggregations_join_rows_with_equal_keys():
    aggregations = by_name(sh=7, init=1)
    aggregations.add(2, SUM, [100], string("sh"))
    text = aggregations.report.default([1, 2])
    assert text == (f"\n  {'init':<50} {1:16d} {0:16d}\n  {'sh':<50} {7:16d} {100:16d}\n")


def test_an_aggregation_that_never_got_a_value_joins_as_zero():
    aggregations = by_name(sh=7)
    aggregations.declare(2, AVG, 16, (ActionKind.DIFEXPR, string("")))
    assert aggregations.report.default([1, 2]) == f"\n  {'sh':<50} {7:16d} {0:16d}\n"


def formatted(aggregations, text, *variables):
    return aggregations.report.formatted(parse_format(text), variables or [1])


def test_a_format_is_shown_once_for_each_row():
    assert formatted(by_name(sh=7, init=1), "%-6s%@5u|\n") == "init      1|\nsh        7|\n"


def test_a_format_without_a_value_shows_the_keys():
    assert formatted(by_name(sh=7, init=1), "%s\n") == "init\nsh\n"


def test_further_values_in_a_format_repeat_the_last():
    aggregations = by_name(sh=7)
    aggregations.add(2, COUNT, [8], string("sh"))
    assert formatted(aggregations, "%s %@u %@u %@u\n", 1, 2) == "sh 7 8 8\n"


def test_a_format_shows_a_signed_value_by_its_normal():
    aggregations = Aggregations()
    aggregations.add(1, SUM, [-10])
    aggregations.aggregate.normalize(1, 4)
    assert formatted(aggregations, "%@i|") == "-2|"


def test_a_format_shows_a_negative_average():
    aggregations = Aggregations()
    aggregations.add(1, AVG, [2, -20])
    assert formatted(aggregations, "[%@8i]") == "[     -10]"


def test_a_format_shows_a_distribution_as_a_block_whatever_its_width():
    aggregations = Aggregations()
    aggregations.add(1, QUANTIZE, quantized(_0=1), string("sh"))
    expected = exact("""
        sh:$
                   value  ------------- Distribution ------------- count    $
                      -1 |                                         0        $
                       0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
                       1 |                                         0        $
        """)
    assert formatted(aggregations, "%s:%@3d") == expected


def test_a_stack_key_in_a_format_is_indented_by_its_width():
    aggregations = Aggregations()
    aggregations.add(1, COUNT, [3], (ActionKind.STACK, stack(KERNEL + 0x1000), {"argument": 20}))
    assert formatted(aggregations, "%-4k%@u\n") == "\n    kernel`sys_read\n3\n"
    assert formatted(aggregations, "%k%@u\n") == "\nkernel`sys_read\n3\n"


def test_agghist_draws_numbers_as_bars():
    aggregations = Aggregations(options=[("agghist", None)])
    aggregations.add(1, COUNT, [1], string("init"))
    aggregations.add(1, COUNT, [3], string("sh"))
    expected = exact("""
        $
                      key  ------------- Distribution ------------- count    $
                     init |@@@@@@@@@@                               1        $
                       sh |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        $
        """)
    assert aggregations.report.unprinted() == expected


def test_aggpack_shows_a_quantize_on_one_line():
    aggregations = Aggregations(options=[("aggpack", None), ("encoding", "ascii")])
    aggregations.add(1, QUANTIZE, quantized(_1=1, _4=9), string("sh"))
    aggregations.add(1, QUANTIZE, quantized(_2=4), string("init"))
    expected = exact("""
        $
                      key  min .-----. max  | count$
                     init    0 :  X  : 8    | 4$
                       sh    0 : _ X : 8    | 10$
        """)
    assert aggregations.report.unprinted() == expected


def test_aggpack_uses_blocks_unless_the_encoding_is_ascii():
    aggregations = Aggregations(options=[("aggpack", None)])
    aggregations.add(1, QUANTIZE, quantized(_1=1, _2=7))
    assert aggregations.report.unprinted() == "\n  min .----. max  | count\n    0 : ▂▇ : 4    | 8\n"


def test_aggpack_shows_the_whole_range_of_lquantize():
    aggregations = Aggregations(options=[("aggpack", None), ("encoding", "ascii")])
    aggregations.add(1, LQUANTIZE, [10 << 48 | 3 << 32, 0, 1, 0, 2, 0])
    assert aggregations.report.unprinted() == ("\n     min .-----. max      | count\n     < 0 : x x : >= 30    | 3\n")


def test_raw_bytes_dump_string_keys():
    aggregations = Aggregations(options=[("rawbytes", None)])
    aggregations.add(1, COUNT, [1], string("sh", 16))
    assert "73 68 00" in aggregations.report.unprinted()


def test_min_keeps_the_smallest_of_two_snapshots():
    aggregations = Aggregations()
    aggregations.add(1, MIN, [5])
    aggregations.add(1, MIN, [-2])
    assert aggregations.report.unprinted() == "               -2\n"
