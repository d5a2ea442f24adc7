"""The parts of several commands: --syntax, --tui and its player, reports on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.text import Text

from emu.isa.disassembly import Syntax
from emu.support.one_line import one_line

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


def write(name: str, text: str) -> None:
    """Write a file, or standard output for -.  Raises `click.ClickException`."""
    if name == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(name).write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{name}: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"{name}: {len(text):,} bytes written")


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
