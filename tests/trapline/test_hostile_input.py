"""Every command with every file that it reads or writes, as somebody could give it who means ill.

One line on standard error, an exit status that says so, no traceback, no hang.  The ELF files that
are damaged with care are in test_wrong_files.py; names in them in test_hostile_names.py.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.command import run_trapline
from tests.support.some import some
from trapline.cli import COMMANDS

BUILT = Path(__file__).parents[2] / "testbins" / "built" / "x86_64"
ZOO, MODULE, SCANNER = BUILT / "linux" / "zoo", BUILT / "objects" / "links-pic.o", BUILT / "objects" / "scanner.o"
PROBE = ("check", "testbins:tiny", "--isa", "riscv64", "--states", "1")
COST = ("bench", "--mechanism", "sdt", "--isa", "riscv64")
RACE = ("race", "--isa", "x86_64")
# What is read: the command line with FILE, the name of the file, and how a good one is made.
READ = {
    (*PROBE, "--results", "FILE"): ("results", lambda: made(*PROBE, "--results", "FILE")),
    ("check", "FILE", "--states", "1", "--function", "fib"): ("program", ZOO.read_bytes),
    ("check", "testbins:kernel", "--isa", "x86_64", "--object", "FILE", "--glue", "fbt", "--function", "sys_access"): (
        "scanner.o",
        SCANNER.read_bytes,
    ),
    ("check", "testbins:kernel", "--isa", "x86_64", "--object", "testbins:scanner.o", "--glue", "FILE:Mine"): (
        "glue.py",
        lambda: b"from trapline.lab.objects.glue import Glue\n\nclass Mine(Glue): pass\n",
    ),
    ("sites", "FILE"): ("module.ko", MODULE.read_bytes),
    ("flame", "FILE", "-o", "graph.svg"): ("stacks", lambda: b"a;b;c 3\na;d 1\n"),
    (*COST, "--compare", "FILE"): ("before.json", lambda: made(*COST, "--json", "FILE")),
    ("bench", "--program", "FILE"): ("program", ZOO.read_bytes),
    ("dtrace", "-s", "FILE"): ("script.d", lambda: b'BEGIN { trace("a"); exit(0); }\n'),
    ("dtrace", "-C", "-s", "FILE"): ("script.d", lambda: b"BEGIN { exit(0); }\n"),
    ("dtrace", "-n", "pid$target::main:entry { exit(0); }", "-c", "FILE"): ("program", ZOO.read_bytes),
    ("dtrace", "-L", "FILE", "-n", "BEGIN { exit(0); }"): ("library.d", lambda: b"inline int ours = 3;\n"),
    (*RACE, "--object", "FILE"): ("poke.o", (BUILT / "objects" / "poke.o").read_bytes),
    (*RACE, "--patch", "uprobe:FILE:main:0", "--method", "int3-first"): ("program", ZOO.read_bytes),
    ("step", "-n", "pid$target::main:entry", "-c", "FILE"): ("program", ZOO.read_bytes),
    ("kernel", "get", "x86_64", "--image", "FILE", "--busybox", "FILE"): ("vmlinuz", ZOO.read_bytes),
    ("lab", "check", "FILE"): ("lab", lambda: b""),
    ("lab", "list", "--sheets", "FILE"): ("sheets", lambda: b""),
    ("uprobe", "-l", "FILE"): ("program", ZOO.read_bytes),
    ("usdt", "-l", "FILE"): ("program", ZOO.read_bytes),
    ("plockstat", "-A", "FILE"): ("program", lambda: b"#!/bin/sh\n"),
    ("lockstat", "FILE"): ("program", lambda: b"#!/bin/sh\n"),
    ("displace", "x86_64", "FILE"): ("code", lambda: b"nop"),
    ("object", "build", "--glue", "fbt", "--sources", "FILE"): ("sources", lambda: b""),
}
# What is written: the command line with FILE.
WRITTEN = (
    (*PROBE, "--report", "FILE.html"),
    ("check", "--museum", "ebreak-length", "--html", "FILE"),
    ("sites", "testbins:tiny", "--isa", "x86_64", "--json", "FILE"),
    ("sites", "testbins:tiny", "--isa", "x86_64", "--jsonl", "FILE"),
    ("step", "-n", "fbt::malloc:entry", "--html", "FILE"),
    ("step", "-n", "fbt::malloc:entry", "--json", "FILE"),
    ("displace", "x86_64", "nop", "--html", "FILE"),
    ("displace", "x86_64", "nop", "--json", "FILE"),
    ("race", "--isa", "riscv64", "--patch", "fbt::malloc:entry", "--method", "write-nosync", "--html", "FILE"),
    (*RACE, "--patch", "fbt::malloc:entry", "--method", "write-once", "--json", "FILE"),
    (*COST, "--json", "FILE"),
    ("bench", "--models", "--json", "FILE"),
    ("lockstat", "-H", "--jsonl", "FILE", "ls"),
    ("lockstat", "-H", "-o", "FILE", "ls"),
    ("plockstat", "-A", "--jsonl", "FILE", "contend"),
    ("lab", "start", "1", "FILE/lab"),
    ("dtrace", "-n", "BEGIN { trace(1); exit(0); }", "-o", "FILE"),
    ("dtrace", "-n", "BEGIN { exit(0); }", "--export", "FILE", "--export-format", "jsonl"),
    ("uprobe", "p:tiny:tiny_length", "-c", str(BUILT / "linux" / "tiny"), "--export", "FILE", "--export-format", "csv"),
)
# Those that read and write no file that the user names.
WITHOUT = {"kldstat", "oracle", "doctor", "demo", "gdb"}  # the last waits for gdb


@cache
def made(*words: str) -> bytes:
    """Return the file that a command writes."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "made")
        done = run_trapline([word.replace("FILE", str(file)) for word in words])
        assert done.returncode == 0, done.stderr
        return file.read_bytes()


def sprinkled(data: bytes) -> bytes:
    """Return a file with wrong bytes here and there, the same each time."""
    changed, chance = bytearray(data), random.Random(3)  # noqa: S311
    for _ in range(max(3, len(data) // 200) if data else 0):
        changed[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(changed)


def as_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        before = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            one.bind(path.name)
        finally:
            os.chdir(before)


CONTENTS = {
    "half": lambda data: data[: len(data) // 2],
    "one byte": lambda data: data[:1],
    "empty": lambda _data: b"",
    "noise": lambda _data: random.Random(1).randbytes(5000),  # noqa: S311
    "noise behind the header": lambda data: data[:64] + random.Random(2).randbytes(len(data)),  # noqa: S311
    "sprinkled": sprinkled,
    "zeros": lambda _data: bytes(300),
    "not UTF-8": lambda data: data.replace(b"a", b"\xff\xfe")[:4000],
    "a list": lambda _data: b"[]",
    "a deep list": lambda _data: b"[" * 20_000,
}
KINDS = {
    "nothing": lambda _path: None,
    "a folder": Path.mkdir,
    "a socket": as_socket,
    "a FIFO": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
}


def checked(words, folder):
    done = run_trapline(words, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    assert done.returncode in {0, 1, 2}, done.stderr
    assert "Traceback" not in done.stderr
    assert "[Errno" not in done.stderr
    return done, lines


# A part of the cases for each command, all of them over the commands, or every one.
PARTS = pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["part", "all"])


@PARTS
@pytest.mark.parametrize("words", READ, ids=lambda words: " ".join(words)[:60])
def test_a_file_that_is_read(words, part, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path / "data"))
    name, good = READ[words]
    cases = [*((what, CONTENTS[what]) for what in CONTENTS), *((what, None) for what in KINDS)]
    for number, (what, change) in enumerate(some(cases[[*READ].index(words) % part :: part])):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / name
        if change is None:
            KINDS[what](file)
        else:
            file.write_bytes(change(good()))
            file.chmod(0o755)
        done, lines = checked([word.replace("FILE", str(file)) for word in words], folder)
        if done.returncode:
            assert len(lines) <= 2 or done.stdout, (what, done.stderr)
            assert lines or done.stdout, what


@PARTS
@pytest.mark.parametrize("words", WRITTEN, ids=lambda words: " ".join(words)[:60])
def test_a_file_that_cannot_be_written(words, part, tmp_path):
    (tmp_path / "file").write_text("")
    cases = ("/dev/full", "/proc/nothing", str(tmp_path / "missing" / "file"), str(tmp_path / "file" / "below"))
    for target in some(cases[WRITTEN.index(words) % part :: part]):
        if target == "/dev/full" and any("FILE." in word or "FILE/" in word for word in words):
            continue
        done, lines = checked([word.replace("FILE", target) for word in words], tmp_path)
        if target == str(tmp_path / "missing" / "file") and "start" in words:
            continue  # it makes the folders
        assert done.returncode, target
        assert lines, target
        assert target.partition("/below")[0] in lines[-1] or "write" in lines[-1], (target, lines)
        assert "standard output" not in lines[-1]


def test_every_command_is_tried():
    assert {words[0] for words in (*READ, *WRITTEN)} | WITHOUT == set(COMMANDS)


FROM_PIPES = {
    ("dtrace", "-q", "-s", "FILE"): (b'BEGIN { printf("%d", 6 * 7); exit(0); }', "42"),
    ("flame", "FILE", "-o", "graph.svg"): (b"a;b 3\n", "graph.svg: 1 stack"),
}


@pytest.mark.parametrize("words", FROM_PIPES, ids=" ".join)
def test_an_open_pipe_is_read_and_a_fifo_that_nobody_writes_is_one_line(words, tmp_path):
    content, told = FROM_PIPES[words]
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    for name in ("/dev/stdin", "/proc/self/fd/0"):
        done = subprocess.run(
            [sys.executable, "-m", "trapline", *(word.replace("FILE", name) for word in words)],
            cwd=tmp_path, input=content, capture_output=True, timeout=60, check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert told in done.stdout.decode()
    done = subprocess.run(  # as bash's <(...)
        [sys.executable, "-m", "trapline", *(word.replace("FILE", f"/dev/fd/{reading}") for word in words)],
        cwd=tmp_path, pass_fds=[reading], capture_output=True, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert told in done.stdout.decode()
    os.close(reading)
    os.mkfifo(tmp_path / "fifo")
    done, lines = checked([word.replace("FILE", str(tmp_path / "fifo")) for word in words], tmp_path)
    assert done.returncode
    assert "a named pipe" in lines[-1]
