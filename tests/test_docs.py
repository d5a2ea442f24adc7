"""Every code block of the documentation runs, and has the output that the page shows.

A python block is run by itself.  A console block holds commands after "$ "; the lines after one are
its output, as tests/support/documents.py compares it; errors are shown after 2>&1 alone.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import run_trapline
from tests.support.documents import matches
from trapline.cli import COMMANDS

DOCS = Path(__file__).parent.parent / "docs"
# Pages with a test of their own, on every ISA.
ELSEWHERE = {"oneliners.md"}
DOCUMENTS = sorted(page for page in DOCS.glob("*.md") if page.name not in ELSEWHERE)
# At the end of a command whose errors are shown, too.
BOTH = " 2>&1"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The commands of the README, which shows no output.
README = (DOCS.parent / "README.md").read_text()
README_COMMANDS = re.findall(r"^trapline .*$", README, re.MULTILINE)

BLOCKS = [
    pytest.param(kind, text, id=f"{document.stem}-{number}")
    for document in DOCUMENTS
    for number, (kind, text) in enumerate(BLOCK.findall(document.read_text()), start=1)
]


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_block_does_what_it_says(kind, text):
    if kind == "python":
        exec(compile(text, "<documentation>", "exec"), {})  # noqa: S102
        return
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *expected = session.splitlines()
        program, *arguments = shlex.split(command.removesuffix(BOTH))
        assert program == "trapline"
        result = run_trapline(arguments)
        shown = result.stdout + (result.stderr if command.endswith(BOTH) else "")
        assert matches(expected, shown), f"$ {command}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("command", README_COMMANDS)
def test_a_command_of_the_readme_runs_and_shows_something(command):
    result = run_trapline(shlex.split(command)[1:])
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1, result.stdout + result.stderr


def test_the_readme_shows_every_command_of_its_own():
    shown = {command.split()[1] for command in README_COMMANDS}
    # `make demo` is the first; two want packages; one a file of another command; one a kernel's sources.
    assert shown >= {*COMMANDS} - {"demo", "kernel", "kldstat", "oracle", "flame", "object"}


def test_a_block_that_shows_something_else_is_noticed():
    assert matches(["a", "...", "d ... f"], "a\nb\nc\nd e f\n")
    assert not matches(["a", "...", "d ... g"], "a\nb\nc\nd e f\n")
    assert not matches(["a"], "a\nb\n")


def test_every_isa_has_its_column_in_the_support_matrix():
    from emu.isa import ISAS

    heading = next(line for line in (DOCS / "isas.md").read_text().splitlines() if re.match(r"\| +\|", line))
    assert [cell.strip() for cell in heading.split("|")[2:-1]] == list(ISAS)
