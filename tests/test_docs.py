"""Every code block of the documentation runs, and has the output that the page shows."""

import re
import shlex

import pytest

from tests.support.command import ROOT, run_trapline
from tests.support.documents import BLOCKS, matches
from trapline.cli import COMMANDS

# The commands of the README, which shows no output.
README = (ROOT / "README.md").read_text()
README_COMMANDS = re.findall(r"^trapline .*$", README, re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block_does_what_it_says(block, monkeypatch):
    if "tried by machine code" in block.text:  # whatever engine the other tests run on
        monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    if block.kind == "python":
        exec(compile(block.text, "<documentation>", "exec"), {})  # noqa: S102
    for example in block.examples():
        result = run_trapline(example.arguments)
        shown = example.is_shown(result.stdout, result.stderr)
        assert shown, f"$ {shlex.join(example.arguments)}\n{result.stdout}{result.stderr}"


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

    heading = next(line for line in (ROOT / "docs" / "isas.md").read_text().splitlines() if re.match(r"\| +\|", line))
    assert [cell.strip() for cell in heading.split("|")[2:-1]] == list(ISAS)
