"""printf(): every conversion against what C prints."""

from __future__ import annotations

import ctypes
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_guest import KERNEL
from tests.trapline.consumer.support import guest_with_symbols, layout, stack, string, u8, u16, u32, u64
from trapline.consumer.records.printf import FormatMismatchError, bind_format
from trapline.consumer.text.cformat import Field, integer_writer
from trapline.consumer.text.symbols import Symbols
from trapline.framework.base.program import ActionKind
from trapline.framework.device.printf import Flag, parse_format


def printf(text, *fields):
    """Print records, given as bytes or (action, bytes[, attributes])."""
    records, data = layout([f if isinstance(f, tuple) else (ActionKind.PRINTF, f) for f in fields])
    return bind_format(parse_format(text), records, Symbols(guest_with_symbols()))(b"\xee\xee\xee" + data, 3)


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("%d", u32(-5), "-5"),
        ("%i", u8(-1), "-1"),
        ("%u", u8(-1), "255"),
        ("%u", u16(-1), "65535"),
        ("%llu", u64(-1), "18446744073709551615"),
        ("%lld", u64(-1), "-1"),
        ("%x", u32(-1), "ffffffff"),
        ("%X", u16(0xBEEF), "BEEF"),
        ("%o", u8(8), "10"),
        ("%#o", u8(8), "010"),
        ("%#x", u32(255), "0xff"),
        ("%#X", u32(255), "0XFF"),
        ("%#x", u32(0), "0"),
        ("%p", u64(KERNEL), "ffffffff80000000"),
        ("%#p", u64(0x1000), "0x1000"),
        ("%5d|", u32(42), "   42|"),
        ("%-5d|", u32(42), "42   |"),
        ("%05d|", u32(-42), "-0042|"),
        ("%08.3d|", u32(5), "     005|"),
        ("%+d", u32(5), "+5"),
        ("% d", u32(5), " 5"),
        ("%+u", u32(5), "5"),
        ("%.3d", u32(-5), "-005"),
        ("%'d", u32(1000000), "1000000"),
        ("%?x|", u64(0xABC), "             abc|"),
        ("%#010x", u32(0xAB), "0x000000ab"),
        ("%hd", u16(-2), "-2"),
        ("%c", u32(0x41), "A"),
        ("%3c|", u8(0x41), "  A|"),
        ("%C", u8(10), "\\n"),
        ("%C", u32(0x80), "\\200"),
        ("%s|", string("init"), "init|"),
        ("%-8s|", string("init"), "init    |"),
        ("%8s|", string("init"), "    init|"),
        ("%.2s|", string("init"), "in|"),
        ("%s", b"no end", "no end"),
        ("%S", string('a"b\n'), 'a\\"b\\n\\0'),
        ("%S", b"a\x01", "a\\001"),
        ("%Y", u64(123456789 * 10**9), "1973 Nov 29 21:33:09"),
        ("%Y", u64(0), "1970 Jan  1 00:00:00"),
        ("%T", u64(123456789 * 10**9), "Thu, 29 Nov 1973 21:33:09 UTC"),
        ("%P", u16(80), "80"),
        ("%I", string("127.0.0.1"), "127.0.0.1"),
        ("%a", u64(KERNEL + 0x2004), "kernel`read_random+0x4"),
        ("%a", u64(KERNEL + 0x2000), "kernel`read_random"),
        ("%a", u64(0x10), "0x10"),
        ("%-24a|", u64(KERNEL + 0x2000), "kernel`read_random      |"),
        ("%f", struct.pack("<d", 1.5), "1.500000"),
        ("%.2f", struct.pack("<f", 0.25), "0.25"),
        ("%8.1e|", struct.pack("<d", 12345.0), " 1.2e+04|"),
        ("%g", struct.pack("<d", 1e10), "1e+10"),
        ("%-8g|", struct.pack("<d", 0.5), "0.5     |"),
        ("%wc", u32(0xE9), "é"),
        ("%ws", u32(0x41) + u32(0xE9) + u32(0), "Aé"),
    ],
)
def test_a_conversion_shows(text, value, shown):
    assert printf(text, value) == shown


def test_an_x87_long_double_has_its_leading_bit():
    # 1.5: mantissa 0xc000000000000000, exponent 0x3fff; the rest of the 16 bytes is padding
    assert printf("%Lf", u64(0xC000_0000_0000_0000) + u16(0x3FFF) + b"\xaa" * 6) == "1.500000"


def test_text_and_percent_signs_stand_around_conversions():
    assert printf("%d%% of %s\n", u32(50), string("all")) == "50% of all\n"


def test_a_format_without_conversions_is_its_text():
    assert printf("hello\n", u32(0)) == "hello\n"


def test_a_star_takes_its_width_from_the_record_before():
    assert printf("%*d|%-*d|", u32(5), u32(42), u32(4), u32(7)) == "   42|7   |"


def test_a_negative_star_aligns_left():
    assert printf("%*s|", u32(-6), string("abc")) == "abc   |"


@pytest.mark.parametrize("width", [2_000_000_000, -2_000_000_000 & 0xFFFF_FFFF])
def test_a_star_is_not_wider_than_a_format_can_say(width):
    assert len(printf("%*d", u32(width), u32(1))) == 999_999


def test_a_star_precision_follows_a_star_width():
    assert printf("%*.*s|", u32(6), u32(2), string("abc")) == "    ab|"


def test_user_symbols_come_with_their_pid():
    assert printf("%A", (ActionKind.USYM, u64(42) + u64(0x401008))) == "sh`main+0x8"


def test_mod_shows_the_module_whatever_the_conversion():
    assert printf("%a", (ActionKind.MOD, u64(KERNEL + 0x2004))) == "kernel"


def test_a_stack_prints_a_line_for_each_frame():
    frames = stack(KERNEL + 0x2004, KERNEL + 0x1000, 0x10)
    record = (ActionKind.STACK, frames, {"argument": 20})
    assert printf("%k", record) == "\nkernel`read_random+0x4\nkernel`sys_read\n0x10\n"
    assert printf("%-3k", record) == "\n   kernel`read_random+0x4\n   kernel`sys_read\n   0x10\n"


def test_missing_records_and_wrong_sizes_are_reported():
    with pytest.raises(FormatMismatchError, match="%s has no record to print"):
        printf("%d %s", u32(1))
    with pytest.raises(FormatMismatchError, match="%d cannot print a record of 3 bytes"):
        printf("%d", b"abc")


def c_printf(text, value):
    """Print as the C library of this host does."""
    buffer = ctypes.create_string_buffer(200)
    ctypes.CDLL(None).snprintf(buffer, len(buffer), text.encode(), ctypes.c_longlong(value))
    return buffer.value.decode()


@given(
    st.sampled_from("duoxX"),
    st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 1, -1, 7, 8]),
    st.sampled_from(["", "-", "0", "+", " ", "#", "#0", "+-", "-#", "0+", "+ "]),
    st.sampled_from(["", "1", "9", "30"]),
    st.sampled_from(["", ".1", ".5", ".25"]),
)
def test_integers_look_as_the_c_library_prints_them(letter, value, flags, width, precision):
    text = f"%{flags}{width}{precision}"
    assert printf(text + letter, u64(value)) == c_printf(f"{text}ll{letter}", value)


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 30))
def test_the_quick_way_prints_integers_like_the_long_one(value, width):
    quick = integer_writer("d", Field(Flag.NONE, width))
    assert quick(value) == integer_writer("d", Field(Flag.GROUP, width))(value)
