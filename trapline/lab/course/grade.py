"""Grades: the points of one folder, and the table of a class as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trapline.lab.course.sheets import Sheet, sheet
from trapline.lab.course.supervised import SECONDS
from trapline.lab.course.work import ANSWERS, CourseError, Result, Work, work_in


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one folder."""

    sheet: Sheet
    work: Work
    results: tuple[Result, ...]
    printed: str = ""
    """The output of the student's files."""

    @property
    def points(self) -> int:
        """The points that the student has reached."""
        return sum(one.points for one in self.results)

    @property
    def of(self) -> int:
        """The largest possible number of points."""
        return sum(one.of for one in self.results)


def grade(folder: Path, more: Path | None = None, seconds: float = SECONDS) -> Grade:
    """Check the work in a folder; a part may take `seconds`.  Raises `CourseError`."""
    # The checker's process goes into the folder, where a relative path would lead elsewhere.
    work = work_in(folder.absolute())
    found = sheet(work.number, more)
    checked = found.check(work, seconds)
    return Grade(found, work, checked.results, checked.printed)


def folders(top: Path) -> Iterator[tuple[str, Path]]:
    """Yield (student, folder) for each work below a folder that has one folder for each student.

    Raises `CourseError`.
    """
    if not top.is_dir():
        raise CourseError(f"{top}: there is no such folder")
    for student in sorted(path for path in top.iterdir() if path.is_dir()):
        for answers in sorted(student.rglob(ANSWERS)):
            yield student.name, answers.parent


def as_csv(top: Path, more: Path | None = None, seconds: float = SECONDS) -> str:
    """Return the grades of a class: each work has a row, even one that cannot be checked.

    Raises `CourseError`.
    """
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("student", "lab", "title", "isa", "points", "of", "failed"))
    for student, folder in folders(top):
        try:
            found = grade(folder, more, seconds)
        except CourseError as error:
            rows.writerow((student, "", folder.name, "", 0, "", str(error)))
            continue
        failed = "; ".join(f"{one.name}: {one.why}" for one in found.results if one.points < one.of)
        rows.writerow((student, found.sheet.number, found.sheet.title, found.work.isa, found.points, found.of, failed))
    return out.getvalue()
