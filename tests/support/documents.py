"""Comparing the output of a command with its text in a document.

A line of three dots stands for any lines, and three dots within a line for any text; trailing
blanks do not count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def matches(expected: Sequence[str], output: str) -> bool:
    """Return whether output is as expected."""

    def strip(lines: Sequence[str]) -> list[str]:
        return [line.rstrip() for line in lines]

    return _match(strip(expected), strip(output.splitlines()))


def _match(expected: list[str], lines: list[str]) -> bool:
    if not expected:
        return not any(lines)
    first, rest = expected[0], expected[1:]
    if first == "...":
        return any(_match(rest, lines[start:]) for start in range(len(lines) + 1))
    if not lines:
        return not any(expected)
    line = ".*".join(re.escape(part) for part in first.split("..."))
    return re.fullmatch(line, lines[0]) is not None and _match(rest, lines[1:])
