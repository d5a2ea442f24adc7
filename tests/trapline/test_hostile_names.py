"""Names in files that would control the terminal: every command that prints them escapes them."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from emu.support.one_line import one_line
from tests.support.command import run_trapline
from tests.support.some import some

LINUX = Path(__file__).parents[2] / "testbins" / "built" / "x86_64" / "linux"
# A name of a file, and as long a one that erases the screen, ends the line, and is not UTF-8.
NAMES = {b"tiny_length": b"t\x1b[2J\n\x9b\xff\x07\xe2\x80\xae"[:11]}
MARKERS = {b"args1": b"\x1b[2J\n"}

COMMANDS = (
    (("uprobe", "-l", "FILE"), "tiny", 0),
    (("uprobe", "p:FILE:tiny_lengt", "-c", "FILE"), "tiny", 1),
    (("sites", "FILE"), "tiny", 0),
    (("sites", "FILE", "--provider", "uprobe"), "tiny", 0),
    (("sites", "FILE", "--json", "-"), "tiny", 0),
    (("check", "FILE", "--states", "1"), "tiny", 0),
    (("bench", "--program", "FILE"), "tiny", 0),
    (("dtrace", "-n", "pid$target::tiny_lengt:entry", "-c", "FILE"), "tiny", 1),
    (("usdt", "-l", "FILE"), "zoo", 0),
    (("usdt", "-L", "FILE"), "zoo", 0),
    (("usdt", "zoo:args0", "-c", "FILE"), "zoo", 1),
)


@pytest.mark.parametrize(("words", "program", "status"), COMMANDS, ids=[" ".join(words) for words, *_ in COMMANDS])
def test_no_name_of_a_file_controls_the_terminal(tmp_path, words, program, status):
    data = (LINUX / program).read_bytes()
    for name, hostile in {**NAMES, **MARKERS}.items():
        data = data.replace(b"\0" + name + b"\0", b"\0" + hostile + b"\0")
    path = tmp_path / "hostile"
    path.write_bytes(data)
    path.chmod(0o755)
    done = run_trapline([word.replace("FILE", str(path)) for word in words])
    assert done.returncode == status, done.stderr
    for line in some((done.stdout + done.stderr).split("\n")):
        assert line.replace("\t", " ").isprintable(), repr(line)


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_stacks_that_are_not_text_are_drawn(tmp_path, suffix):
    stacks = tmp_path / "stacks.folded"
    stacks.write_bytes(b"a;\x1b[2Jb;\xff\xfe\x00c 3\na;d 1\n")
    graph = tmp_path / f"graph.{suffix}"
    done = run_trapline(["flame", str(stacks), "-o", str(graph), "--title", os.fsdecode(b"\xff\x1b[2J")])
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{graph}: 2 stacks\n", "")
    drawn = graph.read_text("utf-8")
    assert "\x1b" not in drawn
    assert r"\udcff\udcfe\x00c" in drawn
    if suffix == "svg":
        ET.fromstring(drawn)  # noqa: S314  our own


def test_what_is_kept_and_what_is_escaped():
    assert one_line("naïve µ 漢字 👍") == "naïve µ 漢字 👍"
    assert one_line("a\x1b[2J\r\n\x9b\u2028\u202e\x00") == r"a\x1b[2J\r\n\x9b\u2028\u202e\x00"
    assert one_line("a\n\tb", "\n") == "a\n\\tb"
    assert one_line(b"\xff".decode(errors="surrogateescape")) == r"\udcff"
