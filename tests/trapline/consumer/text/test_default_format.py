"""Default layouts: integers in columns, text, dumps."""

from __future__ import annotations

import pytest

from trapline.consumer.text.columns import clip, escape, pad
from trapline.consumer.text.default_format import COLUMNS, KEY_WIDTH, TRACE_WIDTH, dump, show_bytes


@pytest.mark.parametrize(
    ("data", "text", "quiet"),
    [
        (b"\xff", " 255", "255"),
        (b"\x05", "   5", "5"),
        (b"\xff\xff", " 65535", "65535"),
        (b"\xff\xff\xff\xff", "       -1", "-1"),
        (b"\x2a\0\0\0", "       42", "42"),
        (b"\x2a" + bytes(7), "               42", "42"),
        (b"\xff" * 8, "               -1", "-1"),
        (b"\0" * 7 + b"\x80", " -9223372036854775808", "-9223372036854775808"),
    ],
)
def test_integers_have_the_column_and_the_sign_of_their_size(data, text, quiet):
    column = COLUMNS[len(data)]
    assert column.text(data, 0) == text
    assert column.quiet(data, 0) == quiet


def test_a_string_fills_a_column_of_33():
    assert show_bytes(b"init\0\0\0\0", TRACE_WIDTH) == "  init                             "


def test_a_string_as_a_key_fills_a_column_of_50():
    assert show_bytes(b"sh\0\0\0", KEY_WIDTH) == "  sh" + " " * 48


def test_a_quiet_string_is_the_text_alone():
    assert show_bytes(b"init\0\0\0\0", TRACE_WIDTH, quiet=True) == "init"


def test_text_without_an_end_keeps_its_column_even_when_quiet():
    assert show_bytes(b"abcde", TRACE_WIDTH, quiet=True) == "  " + "abcde".ljust(33)


def test_a_longer_string_pushes_the_rest_to_the_right():
    assert show_bytes(b"x" * 40 + b"\0", TRACE_WIDTH) == "  " + "x" * 40


def test_control_characters_a_terminal_knows_are_text():
    assert show_bytes(b"a\tb\n\a\b\v\f\r\0", TRACE_WIDTH, quiet=True) == "a\tb\n\a\b\v\f\r"


DUMP = """
             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 01 41 7e 7f ff                                   .A~..
"""


def test_other_bytes_are_dumped():
    assert show_bytes(b"\x01A~\x7f\xff", TRACE_WIDTH) == DUMP


@pytest.mark.parametrize("data", [b"\0" * 5, b"ab\0cd", b"caf\xc3\xa9\0"])
def test_an_empty_string_text_after_the_end_and_non_ascii_are_dumped(data):
    assert show_bytes(data, TRACE_WIDTH) == dump(data)


def test_raw_bytes_are_never_text():
    assert show_bytes(b"init\0", TRACE_WIDTH, raw=True) == dump(b"init\0")


LONG_DUMP = """
             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f  0123456789:;<=>?
        10: 40 41                                            @A
"""


def test_a_dump_has_sixteen_bytes_to_a_row():
    assert dump(bytes(range(0x30, 0x42))) == LONG_DUMP


def test_columns_count_bytes_not_characters():
    assert pad("é", 4) == "  é"
    assert pad("é", -4) == "é  "
    assert clip("éa", 2) == "é"


def test_escapes_have_a_name_or_are_octal():
    assert escape(b'a"\n\0\x1b\xff\\ ') == 'a\\"\\n\\0\\033\\377\\\\ '
