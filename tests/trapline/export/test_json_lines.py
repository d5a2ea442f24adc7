"""JSON lines of the commands that record: each line is an object, with the fields that docs/export.md has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.support.some import some
from trapline.cost.hit_work import Events
from trapline.cost.models import chosen
from trapline.cost.report import row_data
from trapline.cost.rows import Row

PAGE = Path(__file__).parents[3] / "docs" / "export.md"


def documented(command):
    """Return the fields that the page lists for a command."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{command}"))
    return set(re.findall(r"`([a-z_]+)`", row.split("|")[3]))


def rows(text):
    found = [json.loads(line) for line in text.splitlines()]
    assert found
    assert all(isinstance(one, dict) for one in found)
    return found


@pytest.fixture(scope="module")
def lockstat(tmp_path_factory):
    path = tmp_path_factory.mktemp("locks") / "locks.jsonl"
    run = run_trapline(["lockstat", "--isa", "riscv64", "--jsonl", str(path), "-A", "-s", "3", "ls", "/"])
    assert run.returncode == 0, run.stderr
    return path


def test_lockstat(lockstat):
    found = rows(lockstat.read_text())
    assert {field for row in found for field in row} == documented("lockstat")
    for row in found:
        assert sum(row["histogram"].values()) == row["count"]
        assert min(map(int, row["histogram"])) <= row["nsec"] / row["count"] < 2 * max(map(int, row["histogram"])) + 2


def test_jq_and_pandas_read_the_lines(lockstat):
    found = rows(lockstat.read_text())
    if shutil.which("jq"):
        words = ["jq", "-s", "map(.count) | add", str(lockstat)]
        assert int(subprocess.run(words, capture_output=True, check=True).stdout) == sum(row["count"] for row in found)
    pandas = pytest.importorskip("pandas")
    table = pandas.read_json(lockstat, lines=True)
    assert table.groupby("what")["count"].sum().sum() == sum(row["count"] for row in found)


@pytest.mark.parametrize("flags", [[], ["-s", "2"]])
def test_plockstat(flags, tmp_path):
    path = tmp_path / "locks.jsonl"
    run = run_trapline(["plockstat", "-A", *flags, "--jsonl", str(path), "contend", "2"])
    assert run.returncode == 0, run.stderr
    found = rows(path.read_text())
    fields = {field for row in found for field in row}
    assert fields == documented("plockstat") - ({"nsec"} if flags else {"histogram", "stack"})
    assert any(row["lock"] == "contend`counter_lock" and row["count"] == 8 for row in found)


def test_sites():
    isa = ISAS["aarch64"]
    kernel = run_trapline(["sites", "--jsonl", "-", str(images.built(isa) / "kernel"), "--function", "sys_get*"])
    assert all(set(row) == documented("sites` of fbt") for row in some(rows(kernel.stdout)))
    program = run_trapline(["sites", "--jsonl", "-", str(images.linux(isa, "zoo")), "--function", "fib"])
    assert all(set(row) == documented("sites` of others") for row in some(rows(program.stdout)))


def test_step():
    words = ["step", "--isa", "i386", "-n", "fbt::sys_getpid:entry", "-c", "getpid 2", "--count", "2", "--jsonl", "-"]
    found = rows(run_trapline(words).stdout)
    assert all(set(row) == documented("step") for row in found)
    assert {row["firing"] for row in found} == {1, 2}


def test_bench():
    row = Row("x86_64", "fbt", "entry", 67.0, Events(traps=1), 1.0, 60)
    assert set(row_data(row, chosen([]))) == documented("bench")


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    path = str(tmp_path / "none" / "x")
    run = run_trapline(["plockstat", "-A", "--jsonl", path, "contend", "1"])
    assert run.returncode == 1
    assert f"plockstat: {path}: no such file or directory" in run.stderr
