"""The option --tui of several commands: the player in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from trapline.player.terminal_model import TerminalRecording

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
