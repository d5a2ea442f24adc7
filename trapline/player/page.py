"""Recordings and races as one HTML page: template, script and style are files of this package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from trapline.player.model import Played, title_of


def page(played: Sequence[Played], title: str = "") -> str:
    """Return a page that plays recordings; those of several ISAs are aligned by their stages."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "player.html.j2").read_text("utf-8"))
    return template.render(
        title=title or title_of(played),
        played=played,
        style=Markup((folder / "player.css").read_text("utf-8")),  # noqa: S704  a file of this package
        script=Markup((folder / "player.js").read_text("utf-8")),  # noqa: S704
        data=Markup(embedded([_data(one) for one in played])),  # noqa: S704  escaped by `embedded`
    )


def embedded(value: Any) -> str:
    """Return JSON that may stand in a script element: it has no `<`."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _data(one: Played) -> dict[str, Any]:
    return {"label": one.label, "note": one.note, "good": one.good, **one.recording.data()}


def race_page(race: dict[str, Any]) -> str:
    """Return the page of a race, whose data `trapline.lab.race.report.player_data` returns."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "race.html.j2").read_text("utf-8"))
    style = Markup((folder / "player.css").read_text("utf-8"))  # noqa: S704  a file of this package
    script = Markup((folder / "race.js").read_text("utf-8"))  # noqa: S704  a file of this package
    return template.render(race=race, style=style, script=script, data=Markup(embedded(race)))  # noqa: S704  escaped
