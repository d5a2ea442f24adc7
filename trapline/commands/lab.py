"""The command `trapline lab`: the course."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from emu.isa import DEFAULT_ISA, ISAS
from trapline.commands.shared import OutputFile, say, write
from trapline.lab.course.grade import as_csv, grade
from trapline.lab.course.sheets import sheet, sheets
from trapline.lab.course.supervised import SECONDS
from trapline.lab.course.work import CourseError

_folder: Final[Callable[[Any], Any]] = click.option(
    "--sheets",
    "more",
    type=click.Path(path_type=Path),
    envvar="TRAPLINE_LABS",
    help="A folder with sheets of your own (or $TRAPLINE_LABS).",
)
_limit: Final[Callable[[Any], Any]] = click.option(
    "--limit",
    "seconds",
    type=click.FloatRange(0.1, 3600),
    default=SECONDS,
    show_default=True,
    help="The seconds after which a part of the task is stopped.",
)
_PRINTED: Final = 20


@click.group("lab")
def lab_command() -> None:
    """Work through lab sheets on probes, each on the ISA of your choice.

    `trapline lab start 1` makes the folder lab-1 with the sheet and the files that you change;
    `trapline lab check 1` says how many points they are worth.
    """


@lab_command.command("list")
@_folder
def list_command(more: Path | None) -> None:
    """List the sheets."""
    for one in _try(lambda: sheets(more)).values():
        click.echo(f"{one.number:3}  {_try(lambda one=one: one.title)}")  # type: ignore[misc]


@lab_command.command("start")
@click.argument("number", type=click.IntRange(0))
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--isa", type=click.Choice(list(ISAS)), default=DEFAULT_ISA.name, show_default=True)
@_folder
def start_command(number: int, folder: Path | None, isa: str, more: Path | None) -> None:
    """Put sheet NUMBER and its files into FOLDER (default: lab-NUMBER)."""
    work = folder or Path(f"lab-{number}")
    found = _try(lambda: sheet(number, more))
    _try(lambda: found.start(work, isa))
    click.echo(f"{found.title}: read {work / 'sheet.md'}; for your points: trapline lab check {shlex.quote(str(work))}")


@lab_command.command("check")
@click.argument("what", metavar="NUMBER|FOLDER")
@_limit
@_folder
def check_command(what: str, seconds: float, more: Path | None) -> None:
    """Check the work in lab-NUMBER or in FOLDER; exit status 1 if points are missing."""
    directory = Path(f"lab-{what}") if what.isdecimal() else Path(what)
    found = _try(lambda: grade(directory, more, seconds))
    for one in found.results:
        say(f"{one.points:3} of {one.of}  {one.name}" + (f": {one.why}" if one.why and one.points < one.of else ""))
        if one.points < one.of and one.hint:
            click.echo(f"          hint: {one.hint}")
    for line in found.printed.splitlines()[-_PRINTED:]:
        say(f"  printed: {line}")
    click.echo(f"{found.points:3} of {found.of}  {found.sheet.title}, on {found.work.isa}")
    sys.exit(found.points < found.of)


@lab_command.command("grade")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", default="-", help="Write the CSV to this file.")
@_limit
@_folder
def grade_command(folder: Path, output: str, seconds: float, more: Path | None) -> None:
    """Grade a class as CSV: FOLDER has a folder for each student, with their labs in it."""
    write(output, _try(lambda: as_csv(folder, more, seconds)))


def _try(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except CourseError as error:
        raise click.ClickException(str(error)) from None
