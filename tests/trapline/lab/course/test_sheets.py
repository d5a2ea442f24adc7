"""The sheets: a new folder has few points, the model solution all of them, wrong answers a reason.

Each sheet is tried on one ISA here; `make course` tries all of them on all ISAs, and runs each
command of each sheet.
"""

import os
import re
import shlex

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.support.some import some
from tests.trapline.lab.course.solutions.solving import change, solve
from tests.trapline.lab.course.solutions.wrong import WRONG
from trapline.lab.course.grade import grade
from trapline.lab.course.sheets import sheet, sheets

EVERYTHING = os.environ.get("TRAPLINE_COURSE") == "all"
NUMBERS = tuple(sheets())
ROTATED = [(number, list(ISAS)[number % len(ISAS)]) for number in NUMBERS]
CHOSEN = [(number, isa) for number in NUMBERS for isa in ISAS] if EVERYTHING else ROTATED
# Commands of the sheets that `make test` runs, by sheet; the others take longer.
QUICK = {4: "trapline displace", 7: "trapline displace", 9: "trapline dtrace"}
# The points of a folder that nobody has worked on, where that is not 0.
GIVEN = {8: 2}


def started(number, isa, tmp_path):
    folder = tmp_path / f"lab-{number}"
    sheet(number).start(folder, isa)
    return folder


@pytest.mark.parametrize(("number", "isa"), CHOSEN)
def test_a_new_folder_has_few_points_and_the_solution_has_all(number, isa, tmp_path):
    folder = started(number, isa, tmp_path)
    assert isa in (folder / "sheet.md").read_text()
    assert "{isa}" not in (folder / "sheet.md").read_text()
    before = grade(folder)
    assert (before.points, before.of) == (GIVEN.get(number, 0), 10)
    assert all(one.why and one.hint for one in before.results if not one.points)
    solve(number, folder, isa)
    after = grade(folder)
    assert after.points == 10, after.results
    assert not after.printed


@pytest.mark.parametrize(("number", "isa"), CHOSEN)
def test_typical_wrong_answers_get_their_reason_and_a_hint(number, isa, tmp_path):
    wrong = [one for one in WRONG[number] if isa in one.isas.split()]
    assert len(wrong) >= 2
    # Those in different files are made together.
    together = [wrong[:2]] if wrong[0].file != wrong[1].file and not EVERYTHING else [[one] for one in wrong]
    for index, mistakes in enumerate(together if EVERYTHING else together[:2]):
        folder = started(number, isa, tmp_path / str(index))
        solve(number, folder, isa)
        for one in mistakes:
            change(folder / one.file, (one.old, one.new))
        results = {result.name: result for result in grade(folder).results}
        for one in mistakes:
            assert results[one.part].points == 0, one
            assert one.why in results[one.part].why, results[one.part].why
            assert results[one.part].hint


def commands(number, isa):
    return re.findall(r"^    (trapline .*)$", sheet(number).text(isa).replace("\\\n", " "), re.MULTILINE)


@pytest.mark.parametrize(("number", "isa"), CHOSEN)
def test_the_commands_of_a_sheet_run(number, isa, tmp_path):
    found = commands(number, isa)
    assert len(found) >= 2
    chosen = found if EVERYTHING else [one for one in found if one.startswith(QUICK.get(number, "-"))]
    folder = started(number, isa, tmp_path)
    if chosen:
        solve(number, folder, isa)
    for command in chosen:
        words = shlex.split(command)[1:]
        text = ""
        if "<" in words:
            *words, _, file = words
            text = (folder / file).read_text()
        result = run_trapline(words, text_input=text, cwd=folder)
        assert result.returncode == 0, (command, result)
        assert "Error" not in result.stderr
        assert result.stdout, command


def test_every_sheet_names_the_files_of_real_systems_and_says_what_differs():
    for number, one in some(sheets().items()):
        text = one.text("riscv64")
        assert "## Reading" in text
        assert "## What is true elsewhere" in text
        if number > 3:
            assert re.search(r"`(?:sys|kernel|arch)/[\w/.-]+\.[ch]`", text), number
