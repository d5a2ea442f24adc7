"""Lab sheets: folders with a sheet, starter files and a checker.

    3-count-with-d/
        sheet.md      the reading and the task; the first line is the title; {isa} is the student's
        starter/      files that a student begins with; those of starter/ISA/ on that ISA alone
        checker.py    `check(work)`, which yields a `Part` for each part of the task

A teacher's own folder of sheets counts like this package's; a sheet there takes the place of one
with the same number.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from emu.isa import ISAS
from emu.support.did_you_mean import did_you_mean
from trapline.lab.course.supervised import SECONDS, Check, Checked, supervised
from trapline.lab.course.work import ANSWERS, CourseError, Work

_HERE: Final = Path(__file__).parent
# In an installed wheel the sheets are beside this module; in a checkout they are a part of the documentation.
_PLACES: Final = (_HERE / "sheets", _HERE.parents[2] / "docs" / "course")
# The pages of the documentation that the sheets name: in a wheel, those are beside this module, too.
_PAGES: Final = (_HERE / "pages", _HERE.parents[2] / "docs")
SHEET: Final = "sheet.md"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One lab sheet."""

    number: int
    name: str
    folder: Path

    @property
    def title(self) -> str:
        """The first line of the sheet."""
        return self._text.splitlines()[0].lstrip("# ").strip() if self._text.strip() else self.name

    @property
    def _text(self) -> str:
        try:
            return (self.folder / SHEET).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CourseError(f"{self.folder / SHEET}: it cannot be read: {error}") from None

    def text(self, isa: str) -> str:
        """Return the sheet for an ISA, with the folders of what it names."""
        text = self._text.replace("{isa}", isa)
        pages = next((place for place in _PAGES if place.is_dir()), None)
        if pages is None or "docs/" not in text:
            return text
        return f"{text}\n## Files\n\n* The pages of docs/ are in {pages}\n* `emu`, `providers`: {_HERE.parents[2]}\n"

    def start(self, folder: Path, isa: str) -> None:
        """Put the sheet and its starter files into a new folder.  Raises `CourseError`."""
        if isa not in ISAS:
            raise CourseError(f"'{isa}' is not an ISA{did_you_mean(isa, ISAS)}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise CourseError(f"{folder}: it is there already; name another folder, or remove it") from None
        except OSError as error:
            raise CourseError(f"{folder}: {error.strerror}") from None
        try:
            self._fill(folder, isa)
        except OSError as error:
            raise CourseError(f"{error.filename or folder}: {error.strerror}") from None

    def _fill(self, folder: Path, isa: str) -> None:
        (folder / SHEET).write_text(self.text(isa), "utf-8")
        (folder / ANSWERS).write_text(f"lab = {self.number}\nisa = '{isa}'\n", "utf-8")
        for file in self._starter(isa):
            target = folder / file.name
            if file.name == ANSWERS:
                with target.open("a", encoding="utf-8") as answers:
                    answers.write("\n" + file.read_text("utf-8"))
            else:
                shutil.copyfile(file, target)

    def _starter(self, isa: str) -> Iterator[Path]:
        """Yield the files that a student of an ISA begins with."""
        starter = self.folder / "starter"
        for folder in (starter, starter / isa):
            yield from sorted(file for file in folder.iterdir() if file.is_file()) if folder.is_dir() else ()

    def check(self, work: Work, seconds: float = SECONDS) -> Checked:
        """Check a student's work, in a process of its own; a part may take `seconds`.

        Raises `CourseError` if the sheet itself is wrong.
        """
        path = self.folder / "checker.py"
        if not path.is_file():
            raise CourseError(f"{path}: the sheet has no checker")
        return supervised(_checker(path, path.stat().st_mtime), work, path, seconds)


@cache
def _checker(path: Path, _changed: float) -> Check:
    """Return a sheet's checker; a changed file is read again.  Raises `CourseError`."""
    spec = importlib.util.spec_from_file_location(f"trapline_lab_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    try:
        spec.loader.exec_module(module)
        found: Check = module.check
    except Exception as error:  # noqa: BLE001  a teacher's checker may fail in any way
        raise CourseError(f"{path}: {type(error).__name__}: {error}") from None
    return found


def sheets(more: Path | None = None) -> dict[int, Sheet]:
    """Return the sheets by number: this package's, and those of a teacher's folder.

    Raises `CourseError`.
    """
    own = next((place for place in _PLACES if place.is_dir()), None)
    found: dict[int, Sheet] = {}
    for place in (own, more):
        if place is None:
            continue
        if not place.is_dir():
            raise CourseError(f"{place}: there is no such folder")
        for folder in place.iterdir():
            number, _, name = folder.name.partition("-")
            if number.isdecimal() and (folder / SHEET).is_file():
                found[int(number)] = Sheet(int(number), name, folder)
    return dict(sorted(found.items()))


def sheet(number: int, more: Path | None = None) -> Sheet:
    """Return a sheet by its number.  Raises `CourseError`."""
    every = sheets(more)
    if number not in every:
        raise CourseError(f"there is no lab {number}: there are {', '.join(map(str, every))}")
    return every[number]
