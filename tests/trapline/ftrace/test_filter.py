"""Event filters."""

import pytest

from trapline.ftrace.filter import FilterError, parse_filter

FIELDS = frozenset({"file", "cmd", "n"})
VALUES = {"file": "0x10", "cmd": '"SELECT 1"', "n": "-3"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file == 16", True),
        ("file == 0x11", False),
        ("n < 0", True),
        ("n >= -2", False),
        ("file & 0x10", True),
        ('cmd ~ "SELECT*"', True),
        ('cmd == "SELECT 1"', True),
        ("cmd != 'x'", True),
        ("file == 0 || n == -3", True),
        ("file == 0 && n == -3", False),
        ("!(file == 0) && n == -3", True),
    ],
)
def test_a_filter_says_which_events_are_selected(text, expected):
    assert parse_filter(text, FIELDS)(VALUES) is expected


@pytest.mark.parametrize(
    "text", ["nosuch == 1", "file", "file ==", "file == x", "(file == 1", "file == 1 n", "file ; 1", "cmd < 'a'"]
)
def test_a_filter_that_makes_no_sense_is_refused(text):
    with pytest.raises(FilterError):
        parse_filter(text, FIELDS)
