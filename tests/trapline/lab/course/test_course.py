"""The course: its sheets are right on every ISA, and what a student and a teacher see."""

import csv

import pytest

import trapline
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.lab.course.grading import as_csv, grade
from trapline.lab.course.sheets import sheet, sheets
from trapline.lab.course.work import ANSWERS, CourseError, work_in

every_isa = pytest.mark.parametrize("isa", ISAS)
NUMBERS = (1, 2, 3)
RELATIVE = {
    "x86_64": "lea rax, [rip+8]",
    "i386": "jecxz 0x20010",
    "aarch64": "adrp x0, #4096",
    "riscv64": "auipc a0, 1",
}
SAME = {"x86_64": "add eax, ecx", "i386": "add eax, ecx", "aarch64": "add x0, x0, #1", "riscv64": "addi a0, a0, 1"}
REFUSED = {"x86_64": "int3", "i386": "int3", "aarch64": "ldxr x1, [x0]", "riscv64": "lr.d a0, (a1)"}


def solve(number, folder, isa):
    """Put a right solution into a folder that was started."""
    if number == 1:
        (function,) = trapline.sites("testbins:kernel", function="sys_kldfind", isa=isa)
        entry, *returns = function.sites
        answers = {
            "entry_offset": entry.instruction.offset, "entry_bytes": entry.instruction.code.hex(),
            "entry_patch": entry.patch.hex(), "returns": len(returns), "displaced": str(entry.treatment.plan),
        }  # fmt: skip
    elif number == 2:
        for name, text in (("relative", RELATIVE), ("same", SAME), ("refused", REFUSED)):
            (folder / f"{name}.s").write_text(f"// mine\n{text[isa]}\n")
        answers = {"why": trapline.displace(isa, REFUSED[isa])[0].fate("pid").rule}
    else:
        (folder / "calls.d").write_text("fbt::malloc:entry\n{\n\t@calls[execname] = count();\n}\n")
        (folder / "bytes.d").write_text(
            'syscall::read:return /execname == "cat" && (int)arg0 > 0/ { @bytes = sum(arg0); }'
        )
        answers = {}
    head = "".join((folder / ANSWERS).read_text().splitlines(keepends=True)[:2])
    (folder / ANSWERS).write_text(head + "".join(f'{name} = "{value}"\n' for name, value in answers.items()))


@every_isa
@pytest.mark.parametrize("number", NUMBERS)
def test_a_new_folder_has_no_points_and_a_solution_has_all(number, isa, tmp_path):
    folder = tmp_path / "lab"
    sheet(number).start(folder, isa)
    before = grade(folder)
    assert (before.points, before.of) == (0, 10)
    assert all(one.why and one.hint for one in before.results)
    assert isa in (folder / "sheet.md").read_text()
    assert "{isa}" not in (folder / "sheet.md").read_text()
    solve(number, folder, isa)
    after = grade(folder)
    assert after.points == 10, after.results


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
    assert started.stdout == f"Code that moves: read {folder}/sheet.md\n"
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
    assert (written.returncode, written.stdout) == (0, "")
    assert (tmp_path / "grades.csv").read_text().startswith("student,lab,title,isa,points,of,failed\n")


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["start", "99"], "there is no lab 99: there are 1, 2, 3"),
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
