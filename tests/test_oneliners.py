"""Every one-liner of docs/oneliners.md, on every ISA: it matches probes, and has the shown output.

They run inside the test's own process, one boot each: a command of its own would take four times as
long.  A command that the page says not to hold on an ISA must not hold there, or the page is out of
date.
"""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.support.documents import matches
from trapline.commands.dtrace import open_machine
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment

PAGE = Path(__file__).parents[1] / "docs" / "oneliners.md"
ONE = re.compile(
    r"^([^\n]+\n(?:Not on [^\n]*\n)?)\n```console\n\$ trapline dtrace ([^\n]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NOT_ON = re.compile(r"^Not on ([\w, ]+): ", re.MULTILINE)
# What a command that goes well says on standard error.
USUAL = re.compile(r"dtrace: (description '.*' matched [1-9]\d* probes?|pid \d+ has exited)")


@dataclass(frozen=True)
class OneLiner:
    """One command of the page."""

    arguments: tuple[str, ...]
    shown: tuple[str, ...]
    missing: frozenset[str]
    """ISAs where it does not hold."""


def read(page: str) -> list[OneLiner]:
    """Read the one-liners of a page, with what is said above each."""
    found = []
    for text, command, shown in ONE.findall(page):
        named = NOT_ON.search(text)
        missing = frozenset(named[1].split(", ")) if named else frozenset()
        found.append(OneLiner(tuple(shlex.split(command)), tuple(shown.splitlines()), missing))
    return found


ONE_LINERS = read(PAGE.read_text("utf-8"))


def test_every_command_of_the_page_is_read():
    assert len(ONE_LINERS) == PAGE.read_text("utf-8").count("\n$ ") > 40
    assert frozenset(ISAS) >= frozenset().union(*(one.missing for one in ONE_LINERS))
    assert all(any(line.strip(". ") for line in one.shown) for one in ONE_LINERS), "dots alone match anything"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("one", ONE_LINERS, ids=lambda one: one.arguments[-3].split("{")[0].strip())
def test_a_one_liner_shows_what_the_page_says(one, isa, capsys):
    status = main(("--isa", isa, *one.arguments), CommandEnvironment(open_machine, sys.stdout, sys.stderr))
    output, said = capsys.readouterr()
    unusual = [line for line in said.splitlines() if not USUAL.fullmatch(line)]
    holds = status == 0 and not unusual and matches(one.shown, output)
    assert holds is (isa not in one.missing), f"{output}{said}"
