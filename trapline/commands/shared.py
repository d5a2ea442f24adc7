"""The parts of several commands: --syntax, --tui and its player, reports on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.text import Text

from emu.isa.disassembly import Syntax
from emu.support.one_line import one_line
from trapline.support import output_files
from trapline.support.output_files import OutputError

if TYPE_CHECKING:
    from trapline.player.terminal_model import TerminalRecording


syntax_option: Final[Callable[[Any], Any]] = click.option(
    "--syntax",
    type=click.Choice([syntax.value for syntax in Syntax]),
    default=Syntax.INTEL.value,
    show_default=True,
    help="The syntax of x86 instructions.",
)


class CheckFailure(click.ClickException):
    """A check that is not possible; a check that finds a difference exits with 1."""

    exit_code = 2


class ReportConsole(Console):
    """Standard output; `trapline.cli` handles the end of its reader."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(highlight=False, width=width)

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`, instead of ending the process."""
        raise BrokenPipeError


def say(line: str, *, err: bool = False) -> None:
    """Print a line; names in it, of a file that may be hostile, cannot control the terminal."""
    click.echo(one_line(line), err=err)


def print_lines(lines: Iterable[Text]) -> None:
    """Print a report: in colour on a terminal, else as plain lines."""
    console = ReportConsole()
    for line in lines:
        line.plain = one_line(line.plain)
        if console.is_terminal:
            console.print(line, soft_wrap=True)
        else:
            click.echo(line.plain)


class OutputFile(click.types.StringParamType):
    """A file to write, or -; one that cannot be written is refused before the work."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is.  Raises `OutputFailure`."""
        del param, ctx
        try:
            output_files.prepare(value)
        except OutputError as error:
            raise OutputFailure(str(error)) from None
        return str(value)


class OutputFailure(click.ClickException):
    """A file that cannot be written."""

    exit_code = 2


def output_option(flag: str, text: str, *declarations: str) -> Callable[[Any], Any]:
    """Return an option that names a file to write, or - for standard output."""
    return click.option(flag, *declarations, type=OutputFile(), metavar="FILE", help=f"{text}; - is standard output.")


json_option: Final = output_option("--json", "Write JSON", "json_file")


def lines_option(what: str) -> Callable[[Any], Any]:
    """Return --jsonl of a command whose lines are an object for each of something."""
    return output_option("--jsonl", f"Write JSON lines, an object for each {what}", "lines_file")


def write(name: str, text: str, told: str = "") -> None:
    """Write a file, or standard output for -, and tell it.  Raises `OutputFailure`."""
    try:
        output_files.write(name, text)
    except OutputError as error:
        raise OutputFailure(str(error)) from None
    if name != output_files.STANDARD:
        say(f"{name}: {told or f'{len(text):,} bytes written'}")


def write_json(name: str, data: object) -> None:
    """Write data as JSON, as `write` does."""
    write(name, json.dumps(data, indent=1) + "\n")


def write_lines(name: str, rows: Iterable[object]) -> None:
    """Write JSON lines, as `write` does."""
    write(name, "".join(f"{json.dumps(row)}\n" for row in rows))


tui_option: Final[Callable[[Any], Any]] = click.option(
    "--tui", is_flag=True, help="Play it in the terminal; needs textual: pip install 'trapline[tui]'."
)


def require_terminal() -> None:
    """Raise `click.ClickException` without a terminal, or without textual."""
    if find_spec("textual") is None:
        raise click.ClickException("--tui needs textual: pip install 'trapline[tui]'")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException("--tui plays in a terminal, and this is none: --html FILE writes a page")


def play(title: str, recordings: Sequence[TerminalRecording]) -> None:
    """Play recordings until the user ends it."""
    if not recordings:
        raise click.ClickException("the probe did not fire: there is nothing to play")
    from trapline.player.terminal import PlayerApp  # noqa: PLC0415  textual is an optional package

    PlayerApp(title, recordings).run()
