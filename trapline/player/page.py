"""Recordings and races as one HTML page: template, script and style are files of this package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from trapline.player.model import Played, title_of


class About(NamedTuple):
    """What a page says about its subject, before it is played."""

    story: Sequence[str]
    """Paragraphs."""
    rules: Sequence[tuple[str, str]]
    """(name, rule) of what is compared."""
    sources: Sequence[str]
    """Addresses of pages, and files of real systems."""


def page(played: Sequence[Played], title: str = "", about: About | None = None) -> str:
    """Return a page that plays recordings; those of several ISAs are aligned by their stages."""
    data = [_data(one) for one in played]
    return _rendered("player", data, title=title or title_of(played), played=played, about=about)


def _rendered(name: str, data: Any, **values: Any) -> str:
    """Return a page: its template, script and data, and the style of all."""
    folder = files(__package__)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=jinja2.PackageLoader("trapline", "player")
    )
    return environment.get_template(f"{name}.html.j2").render(
        style=Markup((folder / "player.css").read_text("utf-8")),  # noqa: S704  a file of this package
        script=Markup((folder / f"{name}.js").read_text("utf-8")),  # noqa: S704
        data=Markup(embedded(data)),  # noqa: S704  escaped by `embedded`
        **values,
    )


def embedded(value: Any) -> str:
    """Return JSON that may stand in a script element: it has no `<`."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _data(one: Played) -> dict[str, Any]:
    return {"label": one.label, "note": one.note, "good": one.good, **one.recording.data()}


def race_page(race: dict[str, Any], title: str = "", about: About | None = None) -> str:
    """Return the page of a race, whose data `trapline.lab.race.report.player_data` returns."""
    return _rendered("race", race, title=title or race["title"], race=race, about=about)
