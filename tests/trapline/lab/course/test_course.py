"""The course: its sheets are right on every ISA, and what a student and a teacher see."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, run_trapline
from tests.trapline.lab.course.solutions.solving import solve
from trapline.lab.course import supervised
from trapline.lab.course.grade import as_csv, grade
from trapline.lab.course.sheets import sheet, sheets
from trapline.lab.course.work import ANSWERS, CourseError, work_in


def test_a_folder_may_be_named_relative_to_where_one_is(tmp_path, monkeypatch):
    sheet(5).start(tmp_path / "ann" / "5", "riscv64")
    solve(5, tmp_path / "ann" / "5", "riscv64")
    monkeypatch.chdir(tmp_path)
    assert grade(Path("ann/5")).points == 10


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("relative.s", "nop", "'nop' does the same at any address"),
        ("relative.s", "adi a0, a0, 1", "did you mean 'andi'?"),
        ("relative.s", "nop; nop", "there are 2 instructions"),
        ("same.s", "auipc a0, 1", "not out of line"),
        ("same.s", "addi zero, a0, 1", "changes no register"),
        ("refused.s", "nop", "a probe on 'nop' is allowed"),
    ],
)
def test_a_wrong_instruction_gets_the_reason(file, text, why, tmp_path):
    sheet(2).start(tmp_path / "lab", "riscv64")
    solve(2, tmp_path / "lab", "riscv64")
    (tmp_path / "lab" / file).write_text(text)
    found = grade(tmp_path / "lab")
    assert why in next(one.why for one in found.results if one.name == file)


def test_a_wrong_program_gets_the_reason(tmp_path):
    sheet(3).start(tmp_path / "lab", "x86_64")
    (tmp_path / "lab/calls.d").write_text("fbt::malloc:entry { @calls[execname] = count(")
    (tmp_path / "lab/bytes.d").write_text("syscall::read:return { @bytes = sum(arg0); }")
    calls, counted = grade(tmp_path / "lab").results
    assert "in action list: end of input" in calls.why
    assert counted.why == "@bytes is not right for bytes"


def test_the_commands_lead_through_a_lab(tmp_path):
    folder = tmp_path / "lab-2"
    listed = run_trapline(["lab", "list"]).stdout
    assert [int(line.split()[0]) for line in listed.splitlines()] == list(sheets())
    started = run_trapline(["lab", "start", "2", str(folder), "--isa", "i386"])
    told = f"read {folder}/sheet.md; for your points: trapline lab check {folder}"
    assert started.stdout == f"Code that moves: {told}\n"
    checked = run_trapline(["lab", "check", str(folder)])
    assert checked.returncode == 1
    assert "hint: " in checked.stdout
    solve(2, folder, "i386")
    checked = run_trapline(["lab", "check", str(folder)])
    assert checked.returncode == 0
    assert checked.stdout.splitlines()[-1] == " 10 of 10  Code that moves, on i386"


def test_a_class_is_graded_as_csv_and_a_spoilt_folder_is_a_row(tmp_path):
    for student in ("ada", "bob"):
        sheet(2).start(tmp_path / student / "lab-2", "riscv64")
    solve(2, tmp_path / "ada/lab-2", "riscv64")
    (tmp_path / "eve/lab-1").mkdir(parents=True)
    (tmp_path / "eve/lab-1" / ANSWERS).write_text("lab = [")
    rows = list(csv.DictReader(as_csv(tmp_path).splitlines()))
    assert [(row["student"], row["points"], row["of"]) for row in rows] == [
        ("ada", "10", "10"), ("bob", "0", "10"), ("eve", "0", ""),
    ]  # fmt: skip
    assert "answers.toml" in rows[2]["failed"]
    written = run_trapline(["lab", "grade", str(tmp_path), "-o", str(tmp_path / "grades.csv")])
    assert (written.returncode, written.stderr) == (0, "")
    assert (tmp_path / "grades.csv").read_text().startswith("student,lab,title,isa,points,of,failed\n")


def test_the_sheet_of_the_page_for_teachers_works(tmp_path):
    page = (ROOT / "docs/course/teaching.md").read_text()
    own = tmp_path / "sheets/40-count-the-traps"
    (own / "starter").mkdir(parents=True)
    for file in ("sheet.md", "starter/answers.toml", "starter/traps.py", "checker.py"):
        (own / file).write_text(re.search(rf"^`{file}`:.*?^```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1])
    folder = tmp_path / "lab"
    sheet(40, tmp_path / "sheets").start(folder, "i386")
    assert grade(folder, tmp_path / "sheets").points == 0
    (folder / "traps.py").write_text("def traps(probed, called):\n    return sum(one in probed for one in called)\n")
    (folder / ANSWERS).write_text((folder / ANSWERS).read_text().replace('nop = ""', "nop = 1"))
    assert grade(folder, tmp_path / "sheets").points == 4


def test_a_teachers_folder_adds_sheets(tmp_path, monkeypatch):
    own = tmp_path / "own/40-mine"
    own.mkdir(parents=True)
    (own / "sheet.md").write_text("# Mine\n\nfor {isa}\n")
    (own / "checker.py").write_text(
        "from trapline.lab.course.work import Result\n"
        "def check(work):\n    yield Result('it', int(work.answer('x') == 1), 1, 'no', 'set x')\n"
    )
    monkeypatch.setenv("TRAPLINE_LABS", str(tmp_path / "own"))
    assert run_trapline(["lab", "start", "40", str(tmp_path / "work")]).returncode == 0
    with (tmp_path / "work" / ANSWERS).open("a") as file:
        file.write("x = 1\n")
    assert run_trapline(["lab", "check", str(tmp_path / "work")]).stdout.startswith("  1 of 1  it\n")
    (own / "checker.py").write_text("import nothing_of_that_name\n")
    result = run_trapline(["lab", "check", str(tmp_path / "work")])
    assert result.returncode == 1
    assert "checker.py: ModuleNotFoundError" in result.stderr


@pytest.fixture
def python_sheet(tmp_path):
    """A teacher's sheet that calls f() of the student's own.py, and a folder with work on it."""
    own = tmp_path / "own/1-python"
    (own / "starter").mkdir(parents=True)
    (own / "sheet.md").write_text("# Python\n")
    (own / "checker.py").write_text(
        "from trapline.lab.course.work import Part\n"
        "def check(work):\n"
        "    yield Part('first', 1, lambda: work.python('own.py', 'f')(1), 'a hint')\n"
        "    yield Part('second', 1, lambda: '', 'a hint')\n"
    )
    sheet(1, tmp_path / "own").start(tmp_path / "work", "i386")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(x):\n    while True: pass\n", "it has not ended after 1 seconds"),
        ("import sys\ndef f(x):\n    sys.exit(0)\n", "it calls exit"),
        ("import os\nos._exit(7)\n", "it ends the process (exit status 7)"),
        ("import os\ndef f(x):\n    os.kill(os.getpid(), 11)\n", "it crashes the process (signal SIGSEGV)"),
        ("def f(x):\n    return x + {}\n", "own.py, line 2: TypeError: unsupported operand"),
        ("def f(x:\n", "own.py, line 1: SyntaxError: '(' was never closed"),
        ("def f():\n    pass\n", "f() takes 0 positional arguments but 1 was given"),
        ("g = 1\n", "own.py: it does not define 'f'"),
        ("def f(x):\n    return f(x)\n", "own.py, line 2: RecursionError: maximum recursion depth exceeded"),
        ("raise KeyboardInterrupt\n", "own.py, line 1: KeyboardInterrupt"),
    ],
)  # fmt: skip
def test_a_students_file_that_misbehaves_costs_its_part_and_no_other(text, why, python_sheet):
    (python_sheet / "work/own.py").write_text(text)
    first, second = grade(python_sheet / "work", python_sheet / "own", 1).results
    assert (first.points, second.points) == (0, 1)
    assert why in first.why
    assert "\n" not in first.why


def test_a_crash_is_told_in_one_line_also_below_a_fault_handler(python_sheet):
    """Pytest has one, which would write the stack of the tests to the terminal."""
    (python_sheet / "work/own.py").write_text("import os\ndef f(x):\n    os.kill(os.getpid(), 11)\n")
    text = """
import faulthandler, os, sys
from pathlib import Path
from trapline.lab.course.grade import grade
faulthandler.enable(os.dup(2))
print(grade(Path(sys.argv[1]), Path(sys.argv[2]), 1).results[0].why)
"""
    command = [sys.executable, "-c", text, python_sheet / "work", python_sheet / "own"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("it crashes the process (signal SIGSEGV)\n", "")


def test_only_the_memory_of_the_students_file_counts(python_sheet, monkeypatch):
    """Not what this process has already, nor what is garbage here: the process of a check is a fork of it."""
    monkeypatch.setattr(supervised, "_MEMORY", 32 << 20)
    assert supervised._memory(os.getpid()) > 32 << 20
    garbage: list[object] = [bytearray(b"x") * (512 << 20)]
    garbage.append(garbage)
    del garbage
    own = python_sheet / "work/own.py"
    own.write_text("def f(x): return ''\n")
    assert [one.points for one in grade(python_sheet / "work", python_sheet / "own").results] == [1, 1]
    own.write_text("import gc\ndef f(x):\n    gc.collect()\n    kept = b'x' * (256 << 20)\n    while True: pass\n")
    first, _ = grade(python_sheet / "work", python_sheet / "own").results
    assert first.why.startswith("it needs more memory than ")


def test_what_a_students_file_prints_is_shown_apart(python_sheet):
    (python_sheet / "work/own.py").write_text(
        "import os\ndef f(x):\n    print('x is', x)\n    os.system('echo out')\n    return ''\n"
    )
    result = run_trapline(["lab", "check", str(python_sheet / "work"), "--sheets", str(python_sheet / "own")])
    assert result.returncode == 0, result
    lines = ["  1 of 1  first", "  1 of 1  second", "  printed: x is 1", "  printed: out", "  2 of 2  Python, on i386"]
    assert result.stdout.splitlines() == lines
    assert not list((python_sheet / "work").glob("__pycache__"))


def test_a_class_with_files_that_misbehave_is_graded_to_the_end(python_sheet):
    texts = {"ada": "def f(x): return ''", "bob": "import os; os._exit(1)", "eve": "while True: print('no')"}
    for student, text in texts.items():
        sheet(1, python_sheet / "own").start(python_sheet / "class" / student / "lab", "i386")
        (python_sheet / "class" / student / "lab/own.py").write_text(text)
    rows = list(csv.DictReader(as_csv(python_sheet / "class", python_sheet / "own", 1).splitlines()))
    assert [(row["student"], row["points"]) for row in rows] == [("ada", "2"), ("bob", "1"), ("eve", "1")]
    assert rows[1]["failed"] == "first: it ends the process (exit status 1)"
    assert rows[2]["failed"].startswith("first: ")


def test_a_checker_that_does_not_end_is_the_checkers_fault(python_sheet):
    (python_sheet / "own/1-python/checker.py").write_text("def check(work):\n    while True: pass\n")
    with pytest.raises(CourseError, match=r"checker\.py: it has not ended after 0\.2 seconds"):
        grade(python_sheet / "work", python_sheet / "own", 0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["start", "99"], "there is no lab 99: there are 1, 2, 3, 4"),
        (["start", "1", "."], ".: it is there already"),
        (["check", "77"], "lab-77/answers.toml: no such file; `trapline lab start NUMBER` makes"),
        (["grade", "nowhere"], "nowhere: there is no such folder"),
        (["list", "--sheets", "nowhere"], "nowhere: there is no such folder"),
    ],
)
def test_wrong_input_gets_one_line(arguments, message):
    result = run_trapline(["lab", *arguments])
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_answers_that_are_not_a_students_are_refused(tmp_path):
    (tmp_path / ANSWERS).write_text("lab = 1\nisa = 'vax'\n")
    with pytest.raises(CourseError, match="'vax' is not an ISA"):
        work_in(tmp_path)
