"""The common part of several commands: an option, and the printing of reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from emu.isa.disassembly import Syntax

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


def print_lines(lines: Iterable[Text]) -> None:
    """Print a report: in colour on a terminal, else as plain lines."""
    console = ReportConsole()
    for line in lines:
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
