"""Files that a command cannot use: one clear line each, no traceback, no hang."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.support.command import run_trapline

TINY = Path(__file__).parents[2] / "testbins" / "built" / "x86_64" / "linux" / "tiny"
# Offsets in a 64-bit ELF header: the entry, the section headers, their size and number.
ENTRY, SECTIONS, SECTION_SIZE, SECTION_COUNT = 0x18, 0x28, 0x3A, 0x3C
SYMBOLS = 2


def symbols_of(data):
    """Return the place of a file's symbol table."""
    (at,) = struct.unpack_from("<Q", data, SECTIONS)
    size, count = struct.unpack_from("<HH", data, SECTION_SIZE)
    headers = (data[at + number * size :][:size] for number in range(count))
    table = next(one for one in headers if struct.unpack_from("<I", one, 4)[0] == SYMBOLS)
    return struct.unpack_from("<QQ", table, 24)


def name_outside_the_table(data):
    at, size = symbols_of(data)
    for symbol in range(at + 24, at + size, 24):
        struct.pack_into("<I", data, symbol, 0x7FFF_FFFF)


def entry_nowhere(data):
    struct.pack_into("<Q", data, ENTRY, 0x6666_0000)


def sections_nowhere(data):
    struct.pack_into("<Q", data, SECTIONS, 1 << 40)


def truncated(data):
    del data[len(data) // 2 :]


def only_a_header(data):
    del data[64:]


def text(data):
    data[:] = b"hello\n" * 20


def empty(data):
    data.clear()


DAMAGES = (name_outside_the_table, entry_nowhere, sections_nowhere, truncated, only_a_header, text, empty)
COMMANDS = (
    ("check", "FILE", "--no-run", "--states", "1"),
    ("check", "FILE", "--states", "1"),
    ("sites", "FILE"),
    ("sites", "FILE", "--provider", "uprobe"),
    ("sites", "FILE", "--provider", "fbt"),
    ("uprobe", "-l", "FILE"),
    ("uprobe", "p:FILE:tiny_length", "-c", "FILE"),
    ("usdt", "-l", "FILE"),
    ("usdt", "-L", "FILE"),
    ("usdt", "a:b", "-c", "FILE"),
    ("dtrace", "-l", "-n", "pid$target:::entry", "-c", "FILE"),
    ("dtrace", "-n", "BEGIN { exit(0); }", "--guest", "linux", "-c", "FILE"),
)


def check(words, path):
    run = run_trapline([word.replace("FILE", str(path)) for word in words])
    ended_by_signal = run.returncode > 128 and "terminated by SIG" in run.stderr
    assert run.returncode in {0, 1, 2} or ended_by_signal, run.stderr
    assert "Traceback" not in run.stderr
    assert "[Errno" not in run.stderr
    # A usage line may stand before the error, and what a program comes to after its start.
    assert len(run.stderr.splitlines()) <= 3, run.stderr
    return run


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_one_line(tmp_path, damage, words):
    data = bytearray(TINY.read_bytes())
    damage(data)
    path = tmp_path / "damaged"
    path.write_bytes(data)
    path.chmod(0o755)
    check(words, path)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_is_not_a_file_is_one_line(tmp_path, words):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # A name that is too long is refused as a directory that cannot be read is: by an error of stat().
    for path in (tmp_path, tmp_path / "nosuch", Path("/dev/null"), fifo, tmp_path / ("a" * 300)):
        assert check(words, path).returncode != 0, path


@pytest.mark.parametrize("words", [words for words in COMMANDS if "-c" in words], ids=" ".join)
def test_a_program_larger_than_the_guest_is_one_line(tmp_path, words):
    path = tmp_path / "huge"
    path.write_bytes(TINY.read_bytes())
    os.truncate(path, 1 << 34)  # a hole: the disk does not have it
    path.chmod(0o755)
    assert "larger than the guest's memory" in check(words, path).stderr
