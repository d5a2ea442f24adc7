"""A student's work on a sheet, and what a checker says of it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from emu.isa import ISAS

# The file with the answers, in TOML.
ANSWERS: Final = "answers.toml"
_MOST: Final = 1 << 16


class CourseError(Exception):
    """Something that cannot be done; the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a checker says of one part of a task."""

    name: str
    points: int
    of: int
    """Points that the part is worth."""
    why: str = ""
    """What failed."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A folder that `trapline lab start` has made, with a student's answers in it."""

    folder: Path
    number: int
    isa: str
    answers: dict[str, Any]

    def answer(self, name: str) -> Any:
        """Return an answer; None if it was left empty."""
        found = self.answers.get(name)
        return None if found == "" else found

    def text(self, name: str) -> str:
        """Return the content of a file of the folder; "" if it is not there.  Raises `CourseError`."""
        path = self.folder / name
        if not path.is_file():
            return ""
        if path.stat().st_size > _MOST:
            raise CourseError(f"{path}: it is larger than {_MOST:,} bytes")
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CourseError(f"{path}: it cannot be read: {error}") from None


def work_in(folder: Path) -> Work:
    """Return the work in a folder.  Raises `CourseError`."""
    path = folder / ANSWERS
    try:
        answers = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CourseError(f"{path}: no such file; `trapline lab start NUMBER` makes a folder with it") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CourseError(f"{path}: {error}") from None
    number, isa = answers.get("lab"), answers.get("isa")
    if not isinstance(number, int):
        raise CourseError(f"{path}: `lab = NUMBER` is missing")
    if isa not in ISAS:
        raise CourseError(f"{path}: isa = '{isa}' is not an ISA: there are {', '.join(ISAS)}")
    return Work(folder, number, isa, answers)


def graded(name: str, points: int, test: Callable[[], str], hint: str = "") -> Result:
    """Return all points of a part if `test` returns "", else none; it returns what is wrong."""
    why = test()
    return Result(name, 0, points, why, hint) if why else Result(name, points, points)
