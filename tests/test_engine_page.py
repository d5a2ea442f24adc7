"""docs/engine.md shows a clause as `dtrace -S -x machinecode` does, and names existing files."""

import io
import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import run_trapline
from trapline.commands.dtrace import open_machine
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment

llvmlite = pytest.importorskip("llvmlite")

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "engine.md").read_text("utf-8")
COMMAND = re.findall(r"^```shell\ntrapline (.*?)\n```$", PAGE, re.MULTILINE)[0]
SHOWN = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)[0]
VERSION = re.findall(r"output of llvmlite (\S+)\.", PAGE)[0]
MACHINE_CODE = "- machine code -"


def plain(text):
    return [line.rstrip() for line in text.replace("\t", "    ").strip("\n").splitlines()]


def test_the_clause_is_shown_as_the_command_shows_it():
    shown = plain(run_trapline(shlex.split(COMMAND)).stderr)
    expected = plain(SHOWN)
    if llvmlite.__version__ == VERSION:
        assert shown == expected
    else:
        # Another LLVM: the DIF is the same, and what is called.
        begins = next(place for place, line in enumerate(expected) if "CLAUSE" in line)
        assert shown[: begins + 1] == expected[: begins + 1]
        assert called(shown) == called(expected)
    assert any(MACHINE_CODE in line for line in shown)


def called(lines):
    return set(re.findall(r"call i64 @(\w+)", "\n".join(lines)))


def test_the_files_are_there():
    files = re.findall(r"`((?:emu|providers|tests|trapline)/[\w/]+(?:\.py)?)`", PAGE)
    assert len(files) > 10
    for file in files:
        assert (ROOT / file).exists(), file


def test_machine_code_is_shown_once_for_clauses_that_do_the_same():
    program = "fbt::sys_read:entry, fbt::sys_write:entry { @ = count(); } BEGIN { trace(1); }"
    shown = run_trapline(["dtrace", "-S", "-x", "machinecode", "-en", program]).stderr
    assert shown.count("define") == 2
    assert shown.count(" CLAUSE ") == 2
    assert "locate" in shown


def test_without_llvmlite_the_option_says_what_it_needs():
    out, err = io.StringIO(), io.StringIO()
    words = ["-S", "-x", "machinecode", "-en", "BEGIN { exit(0); }"]
    assert main(words, CommandEnvironment(open_machine, out, err)) == 1
    assert "-x machinecode needs llvmlite: pip install llvmlite" in err.getvalue()
