"""`trapline check --museum NAME` with --html or --tui: an exhibit in the player."""

from __future__ import annotations

from collections.abc import Iterator

import click

from emu.isa.disassembly import Syntax
from trapline.commands.shared import play, require_terminal, write
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum import recordings
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.gallery import find
from trapline.lab.museum.orders import InOrders
from trapline.player.model import Played
from trapline.player.page import About, page, race_page


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
    about = About((exhibit.system, *exhibit.description), tuple(_rules(exhibit)), exhibit.references)
    # A page has the story and the rules already.
    played = () if race else _played(exhibit, syntax, notes_from=0 if tui else 1)
    if tui:
        from trapline.player.terminal_model import terminal_firings, terminal_race  # noqa: PLC0415  textual is an optional package

        if race:
            play(title, [terminal_race(race)])
        else:
            play(title, terminal_firings(played))
        return
    assert file is not None
    write(file, race_page(race, title, about) if race else page(played, title, about))


def _rules(exhibit: Exhibit) -> Iterator[tuple[str, str]]:
    """Yield the rules with their names; of a race also what the right one has been tried in."""
    yield "old rule", exhibit.was
    if not isinstance(exhibit.check, InOrders):
        yield "right rule", exhibit.now
        return
    tried = exhibit.check.verdict(exhibit, Rules())
    yield "right rule", f"{exhibit.now} ({'it holds' if tried.agrees else 'IT FAILS'}: {' '.join(tried.lines)})"


def _played(exhibit: Exhibit, syntax: Syntax, notes_from: int) -> tuple[Played, Played]:
    old, right = recordings.play(exhibit, syntax)
    system = "" if notes_from else f"{exhibit.system}: "
    return (
        Played("old rule", old, system + " ".join(old.notes[notes_from:]), good=False),
        Played("right rule", right, " ".join(right.notes[notes_from:]), good=True),
    )
