"""Comparing results, and the prediction for a program."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.cost.hit_work import Events
from trapline.cost.models import chosen
from trapline.cost.report import ComparisonError, compared, data
from trapline.cost.rows import Idle, Row

ROW = Row("riscv64", "pid", "out of line: nop", 2.0, Events(traps=2), 2.0, 177)


@pytest.fixture
def earlier(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(data([ROW], chosen([]))), encoding="utf-8")
    return path


def test_an_equal_result_has_not_grown(earlier):
    assert compared(earlier, [ROW], 0.05) == ([], [], 1)


def test_what_only_one_side_has_is_told(earlier):
    found = compared(earlier, [ROW, replace(ROW, isa="i386")], 0.05)
    assert found == ([], [f"i386 pid out of line: not in {earlier}"], 1)
    found = compared(earlier, [replace(ROW, what="entry")], 0.05)
    assert found == ([], [f"riscv64 pid entry: not in {earlier}", f"riscv64 pid out of line: only in {earlier}"], 0)
    found = compared(earlier, [replace(ROW, mechanism="fbt")], 0.05)
    assert found.left_out == [f"riscv64 fbt out of line: nop: not in {earlier}"], "pid was not asked"
    found = compared(earlier, [replace(ROW, idle=Idle(rest=None))], 0.05)
    assert found == ([], [f"riscv64 pid out of line: rest is only in {earlier}"], 1)


def test_a_cost_that_grows_is_named(earlier):
    ((change,), _, _) = compared(earlier, [replace(ROW, instructions=3.0, what="out of line: add")], 0.05)
    assert (change.row, change.what, change.before, change.after) == ("riscv64 pid out of line", "instructions", 2, 3)
    assert compared(earlier, [replace(ROW, instructions=3.0)], 0.5) == ([], [], 1)


def test_a_site_that_costs_more_at_rest_has_grown(earlier):
    ((change,), _, _) = compared(earlier, [replace(ROW, idle=Idle(rest=3.0))], 0.05)
    assert (change.what, change.before, change.after) == ("rest", 0, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a result of `trapline bench --json`"),
        ('{"format": "trapline bench", "version": 99, "rows": []}', "version 99"),
        ('{"format": "trapline bench", "version": 2, "rows": [{}]}', "a row is damaged"),
    ],
)
def test_a_file_that_is_not_a_result_is_one_line(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ComparisonError, match=message):
        compared(path, [ROW], 0.05)


@pytest.mark.parametrize("isa", ISAS)
def test_the_hits_of_a_program_are_those_that_dtrace_counts(isa):
    words = ["bench", "--isa", isa, "--program", "testbins:zoo recursion", "--json", "-"]
    probes = ["--probes", "pid$target:a.out:fib:entry", "--probes", "pid$target:a.out:is_*:return"]
    found = json.loads(run_trapline([*words, *probes]).stdout)
    program = "pid$target:a.out:fib:entry, pid$target:a.out:is_*:return { @[probefunc] = count(); }"
    traced = run_trapline(["dtrace", "--isa", isa, "-qn", program, "-c", "testbins:zoo recursion"]).stdout
    counts = {each["probe"].split(":")[2]: each["hits"] for each in found["hits"]}
    assert counts == {line.split()[0]: int(line.split()[1]) for line in traced.splitlines() if len(line.split()) == 2}
    assert all(each["traps"] in {1, 2} for each in found["hits"])
    assert found["isa"] == isa


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--isa", "m68k"], "--isa m68k: choose from all, x86_64"),
        (["--mechanism", "jprobe"], "--mechanism jprobe: choose from fbt"),
        (["--model", "zen9"], "no model 'zen9'"),
        (["--program", "nosuch"], "nosuch: no such program"),
        (["--program", "testbins:nosuch"], "there is no testbins:nosuch"),
        (["--program", "testbins:zoo recursion", "--probes", "pid$target:a.out:nosuch:entry"], "nosuch"),
        (["--program", "'"], "--program: No closing quotation"),
    ],
)
def test_wrong_input_is_one_line(arguments, message):
    run = run_trapline(["bench", *arguments])
    assert run.returncode in {1, 2}
    assert message in run.stderr
    assert "Traceback" not in run.stderr
