"""A student's work on a sheet, and the verdict of a checker."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from emu.isa import ISAS
from trapline.support.input_files import readable

# The file with the answers, in TOML.
ANSWERS: Final = "answers.toml"
_MOST: Final = 1 << 16
# The beginning of the names of a student's modules.
_MODULE: Final = "work_of_a_student_"


class CourseError(Exception):
    """The course cannot execute a command; the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict of a checker on one part of a task."""

    name: str
    points: int
    of: int
    """The largest number of points of the part."""
    why: str = ""
    """The mistake in the part; "" if there is none."""
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

    def python(self, name: str, function: str) -> Callable[..., Any]:
        """Run a Python file of the folder, and return one of its functions or classes.

        Call it in the test of a `Part`, which runs in a process of its own.  Raises `CourseError`,
        and anything that the file raises.
        """
        path = self.folder / name
        if not path.is_file():
            raise CourseError(f"{name}: there is no such file")
        module = ModuleType(f"{_MODULE}{path.stem}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # dataclasses look there
        exec(compile(self.text(name), path, "exec"), vars(module))  # noqa: S102  the student's own code
        found: Callable[..., Any] | None = getattr(module, function, None)
        if not callable(found):
            raise CourseError(f"{name}: it does not define '{function}'")
        return found

    @staticmethod
    def ran_python() -> bool:
        """Return whether this process has run a student's Python."""
        return any(name.startswith(_MODULE) for name in sys.modules)

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
            why = error.strerror if isinstance(error, OSError) else error
            raise CourseError(f"{path}: it cannot be read: {why}") from None


def work_in(folder: Path) -> Work:
    """Return the work in a folder.  Raises `CourseError`."""
    path = folder / ANSWERS
    try:
        answers = tomllib.loads(readable(path).read_text("utf-8"))
    except FileNotFoundError:
        raise CourseError(f"{path}: no such file; `trapline lab start NUMBER` makes a folder with it") from None
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise CourseError(f"{path}: {error}") from None
    number, isa = answers.get("lab"), answers.get("isa")
    if not isinstance(number, int):
        raise CourseError(f"{path}: `lab = NUMBER` is missing")
    if not isinstance(isa, str) or isa not in ISAS:
        raise CourseError(f"{path}: isa = '{isa}' is not an ISA: there are {', '.join(ISAS)}")
    return Work(folder, number, isa, answers)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a task: its points are given if `test` returns "".

    Else `test` returns what is wrong, on one line.  It may raise what a student's code raises.
    """

    name: str
    points: int
    test: Callable[[], str]
    hint: str = ""
