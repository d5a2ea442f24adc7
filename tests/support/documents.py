"""The code blocks of the documentation, and comparing the output of a command with its text there.

A python block is run by itself.  A console block holds commands after "$ "; the lines after one are
its output, and errors are shown after 2>&1 alone.  A line of three dots stands for any lines, and
three dots within a line for any text; trailing blanks do not count.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.support.command import ROOT

# Pages with a test of their own, on every ISA.
_ELSEWHERE = {"oneliners.md"}
PAGES = [*sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in _ELSEWHERE), ROOT / "README.md"]
# At the end of a command whose errors are shown, too.
_BOTH = " 2>&1"
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block of a page."""

    name: str
    """The page and the number of the block in it, for example "dtrace-3"."""
    kind: str
    text: str

    def examples(self) -> Iterator[Example]:
        """Return the commands of a console block."""
        for session in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *expected = session.splitlines()
            program, *arguments = shlex.split(command.removesuffix(_BOTH))
            assert program == "trapline"
            yield Example(arguments, expected, both=command.endswith(_BOTH))


class Example(NamedTuple):
    """A command as a page shows it: its words after `trapline`, and the lines of its output."""

    arguments: Sequence[str]
    expected: Sequence[str]
    both: bool
    """Whether errors are shown, too."""

    def is_shown(self, stdout: str, stderr: str) -> bool:
        """Return whether the page shows this output."""
        return matches(self.expected, stdout + stderr * self.both)


BLOCKS = [
    Block(f"{page.stem}-{number}", kind, text)
    for page in PAGES
    for number, (kind, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), start=1)
]


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
