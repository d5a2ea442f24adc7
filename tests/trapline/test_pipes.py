"""Commands whose output cannot be written: there is no message if the reader has exited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trapline.cli import BROKEN_PIPE, COMMANDS

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "testbins" / "built" / "x86_64"
KERNEL = str(BUILT / "kernel")
TINY = str(BUILT / "linux" / "tiny")

# Command line -> lines on standard error that a run without trouble prints as well.
LINES = {
    ("--help",): 0,
    ("bench", "--models"): 0,
    ("check", "--help"): 0,
    ("check", "--museum", "list"): 0,
    ("check", "testbins:tiny", "--isa", "riscv64", "--states", "1", "--no-run"): 0,
    ("demo",): 0,
    ("displace", "x86_64", "push rbp; ret"): 0,
    ("doctor", "-v"): 0,
    ("dtrace", "-l"): 0,
    ("dtrace", "-n", "fbt::malloc:entry { trace(1); }", "-c", "ls"): 1,
    ("flame", "--help"): 0,
    ("gdb", "--help"): 0,
    ("kernel", "--help"): 0,
    ("lab", "list"): 0,
    ("kldstat",): 0,
    ("lockstat", "-H", "ls"): 0,
    ("object", "build", "--help"): 0,
    ("oracle", "--help"): 0,
    ("plockstat", "-A", "contend"): 0,
    ("race", "--patch", "fbt::malloc:entry", "--method", "stop-machine"): 0,
    ("sites", KERNEL): 0,
    ("sites", KERNEL, "--json", "-"): 0,
    ("step", "-n", "fbt::malloc:entry"): 0,
    ("uprobe", "-l", TINY): 0,
    ("uprobe", "-c", TINY, "p:tiny:tiny_length"): 0,
    ("usdt", "-l", str(BUILT / "linux" / "zoo")): 0,
}


def run(words, stdout):
    command = [sys.executable, "-m", "trapline", *words]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=120, check=False)


def test_every_command_is_tried():
    assert {words[0] for words in LINES} == {*COMMANDS, "--help"}


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_reader_that_is_gone_ends_the_command_without_a_word(words):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = run(words, pipe)
    assert (done.returncode, len(done.stderr.splitlines())) == (BROKEN_PIPE, LINES[words]), done.stderr


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_full_disk_is_one_line(words):
    with Path("/dev/full").open("wb") as full:
        done = run(words, full)
    *_, line = done.stderr.splitlines()
    assert line.endswith(": No space left on device")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, LINES[words] + 1), done.stderr


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_closed_output_is_one_line(words):
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "trapline", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    *_, line = done.stderr.splitlines()
    assert line.endswith(": Bad file descriptor")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, LINES[words] + 1), done.stderr


@pytest.mark.parametrize("closed", ["<&-", "<&- 2>&-"])
def test_a_closed_input_or_message_stream_changes_nothing_else(closed):
    trace = ["dtrace", "-qn", 'BEGIN { printf("shown"); exit(3); }']
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "trapline", *trace]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "shown\n", "")
