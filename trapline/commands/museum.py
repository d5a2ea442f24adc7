"""`trapline check --museum NAME` with --html or --tui: an exhibit in the player."""

from __future__ import annotations

import click

from emu.isa.disassembly import Syntax
from trapline.commands.shared import play, require_terminal, write
from trapline.lab.museum import recordings
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.gallery import find
from trapline.lab.museum.orders import InOrders
from trapline.player.model import Played
from trapline.player.page import page, race_page


def play_exhibit(name: str | None, file: str | None, syntax: Syntax, *, tui: bool) -> None:
    """Write an exhibit's page, or play it in the terminal.

    Raises `MuseumError`, and `click.ClickException` if that is not possible.
    """
    if name is None:
        raise click.UsageError(f"{'--tui' if tui else '--html'} plays an exhibit: name it with --museum")
    if tui and file is not None:
        raise click.UsageError("--tui plays the exhibit, and writes no file")
    if tui:
        require_terminal()
    exhibit = find(name)
    title = f"{exhibit.name}: {exhibit.title}"
    race = exhibit.check.player_data(exhibit) if isinstance(exhibit.check, InOrders) else None
    played = () if race else _played(exhibit, syntax)
    if tui:
        from trapline.player.terminal_model import terminal_firings, terminal_race  # noqa: PLC0415  textual is an optional package

        if race:
            play(title, [terminal_race(race)])
        else:
            play(title, terminal_firings(played))
        return
    assert file is not None
    write(file, race_page(race) if race else page(played, title))


def _played(exhibit: Exhibit, syntax: Syntax) -> tuple[Played, Played]:
    old, right = recordings.play(exhibit, syntax)
    return (
        Played("old rule", old, f"{exhibit.system}: {' '.join(old.notes)}", good=False),
        Played("right rule", right, " ".join(right.notes), good=True),
    )
