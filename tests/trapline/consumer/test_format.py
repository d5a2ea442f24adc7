"""trapline.framework.device.printf: printf formats as data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.framework.device.printf import (
    CONVERSIONS,
    Accepts,
    Conversion,
    Flag,
    FormatError,
    conversions,
    parse_format,
    write_format,
)


def test_a_format_without_conversions_is_one_literal():
    assert parse_format("hello, world\n") == ("hello, world\n",)


def test_an_empty_format_has_no_pieces():
    assert parse_format("") == ()


def test_a_doubled_percent_sign_is_literal_and_joins_the_text_around_it():
    assert parse_format("100%% sure") == ("100% sure",)


def test_flags_width_precision_and_size_are_read():
    (conversion,) = parse_format("%-#8.3llx")
    assert conversion == Conversion("llx", 1, Flag.LEFT | Flag.ALTERNATE, 8, 3)


def test_a_minus_cancels_zero_padding_and_the_reverse():
    assert parse_format("%0-5d")[0].flags == Flag.LEFT
    assert parse_format("%-05d")[0].flags == Flag.ZERO


def test_a_question_mark_is_the_width_of_a_pointer():
    assert parse_format("%?p")[0].width == 16


def test_a_star_before_the_dot_is_the_width_and_after_it_the_precision():
    (conversion,) = parse_format("%*.*s")
    assert (conversion.dynamic_width, conversion.dynamic_precision, conversion.arguments) == (True, True, 3)


def test_an_aggregation_conversion_takes_no_argument():
    assert parse_format("%@16d")[0].aggregation
    assert parse_format("%@d")[0].arguments == 0


def test_conversions_are_numbered_with_the_doubled_percent_signs():
    assert [conversion.number for conversion in conversions(parse_format("%d %% %s"))] == [1, 3]


def test_every_conversion_of_the_language_is_known():
    plain = {*"aAcCdiuoxXpsSIkPTYeEfgG"}
    sized = {size + letter for size in ("h", "l", "ll") for letter in "diouxX"}
    wide = {size + letter for size in "lw" for letter in "cs"}
    long_double = {"L" + letter for letter in "eEfgG"}
    assert set(CONVERSIONS) == plain | sized | wide | long_double


def test_the_type_a_conversion_takes_is_data():
    assert parse_format("%llx")[0].accepts is Accepts.ANY_LONG_LONG


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%", "format conversion #1 name expected before end of format string"),
        ("a %d %5", "format conversion #2 name expected before end of format string"),
        ("%1$d", "format conversion #1 uses unsupported positional format (%n$)"),
        ("%q", "format conversion #1 is undefined: %q"),
        ("%lls", "format conversion #1 is undefined: %lls"),
        ("%.3.4d", "format conversion #1 has more than one '.' specified"),
        ("%**d", "format conversion #1 has more than one '*' specified for the output width"),
        ("%.**d", "format conversion #1 has more than one '*' specified for the output precision"),
        ("%5%", "format conversion #1 cannot be combined with other format flags: %%"),
    ],
)
def test_a_broken_format_is_refused_by_the_number_of_the_conversion(text, message):
    with pytest.raises(FormatError) as caught:
        parse_format(text)
    assert str(caught.value) == message


_conversion = st.builds(
    Conversion,
    name=st.sampled_from(sorted(CONVERSIONS)),
    number=st.just(1),
    flags=st.sampled_from([Flag.NONE, Flag.ALTERNATE, Flag.LEFT, Flag.ZERO | Flag.PLUS, Flag.SPACE | Flag.GROUP]),
    width=st.integers(0, 99),
    precision=st.integers(0, 99),
    dynamic_width=st.just(value=False),
    dynamic_precision=st.booleans(),
    aggregation=st.booleans(),
)


@given(_conversion, st.text(max_size=8))
def test_a_written_format_reads_back_equal(conversion, text):
    if conversion.dynamic_precision:
        conversion = Conversion(conversion.name, 1, conversion.flags, conversion.width, 0, dynamic_precision=True)
    pieces = (conversion, text) if text else (conversion,)
    assert parse_format(write_format(pieces)) == pieces
