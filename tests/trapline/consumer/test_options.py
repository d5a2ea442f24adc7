"""trapline.options: kinds, values, and who may set what when."""

from __future__ import annotations

import pytest

from trapline.options import ACTIVE, INVALID_NAME, INVALID_VALUE, NOT_IN_PROGRAM, OptionError, Options, parse_assignment


def value(name: str, text: str | None) -> object:
    options = Options()
    options.set(name, text)
    return options.run_time().get(name)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64", 64),
        ("0x40", 64),
        ("010", 8),
        ("4k", 4096),
        ("4K", 4096),
        ("2m", 2 << 20),
        ("1G", 1 << 30),
        ("1t", 1 << 40),
    ],
)
def test_a_size_takes_a_unit_in_powers_of_1024(text, size):
    assert value("bufsize", text) == size


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("5", 5),
        ("5ns", 5),
        ("5NSEC", 5),
        ("5us", 5_000),
        ("5msec", 5_000_000),
        ("5s", 5_000_000_000),
        ("2m", 120_000_000_000),
        ("1hour", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("10hz", 100_000_000),
        ("0hz", 0),
    ],
)
def test_a_time_takes_a_unit_or_is_a_rate(text, nanoseconds):
    assert value("switchrate", text) == nanoseconds


@pytest.mark.parametrize(("text", "number"), [(None, 0), ("1", 1), ("0", 0), ("Yes", 1), ("enabled", 1), ("0x10", 16)])
def test_a_scalar_is_a_number_or_a_word_and_no_value_counts_as_set(text, number):
    assert value("quiet", text) == number


@pytest.mark.parametrize("text", ["", "no", "OFF", "unset", "disabled", "false"])
def test_an_empty_scalar_or_a_word_for_off_unsets(text):
    options = Options()
    options.set("quiet")
    options.set("quiet", text)
    assert not options.is_set("quiet")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("quite", None, INVALID_NAME),
        ("bufsize", "many", INVALID_VALUE),
        ("bufsize", "4kb", INVALID_VALUE),
        ("bufsize", "9000000t", INVALID_VALUE),
        ("bufsize", "-1", INVALID_VALUE),
        ("bufpolicy", "circular", INVALID_VALUE),
        ("bufpolicy", None, INVALID_VALUE),
        ("switchrate", "10x", INVALID_VALUE),
        ("quiet", "maybe", INVALID_VALUE),
        ("errtags", "1", INVALID_VALUE),
        ("iregs", "0", INVALID_VALUE),
        ("define", None, INVALID_VALUE),
        ("encoding", "latin1", INVALID_VALUE),
        ("version", "one", "Version is not properly formatted or is too large"),
        ("version", "1.15", "Requested version is not supported by compiler"),
        ("amin", "Stable", INVALID_VALUE),
    ],
)
def test_what_cannot_be_set_is_refused_in_the_words_of_libdtrace(name, text, message):
    with pytest.raises(OptionError, match=f"^{message}$"):
        Options().set(name, text)


def test_only_dynamic_options_can_be_set_while_tracing():
    options = Options()
    options.set("switchrate", "10hz", active=True)
    with pytest.raises(OptionError, match=f"^{ACTIVE}$"):
        options.set("bufsize", "4m", active=True)


def test_preprocessor_options_cannot_be_set_in_a_program():
    with pytest.raises(OptionError, match=f"^{NOT_IN_PROGRAM}$"):
        Options().set("define", "X=1", in_program=True)


def test_the_buffer_policy_is_the_number_of_the_kernel():
    assert [value("bufpolicy", text) for text in ("ring", "fill", "switch")] == [0, 1, 2]


def test_kdefs_takes_back_knodefs():
    options = Options()
    options.set("knodefs")
    options.set("kdefs")
    assert not options.is_set("knodefs")


def test_options_that_repeat_keep_every_value_in_order():
    options = Options()
    options.set("incdir", "/a")
    options.set("incdir", "/b")
    assert options.every("incdir") == ("/a", "/b")


def test_compile_time_options_are_not_for_the_device():
    options = Options()
    options.set("errtags")
    options.set("strsize", "512")
    assert options.run_time() == {"strsize": 512}


def test_an_assignment_without_an_equals_sign_has_no_value():
    assert parse_assignment("quiet") == ("quiet", None)
    assert parse_assignment("quiet=") == ("quiet", "")
    assert parse_assignment("define=A=1") == ("define", "A=1")
