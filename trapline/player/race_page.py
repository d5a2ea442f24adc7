"""The HTML page of a race: it has a lane for each CPU, and plays the race step by step."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from trapline.player.page import embedded


def lanes_page(race: dict[str, Any]) -> str:
    """Return the page of a race, whose data `trapline.lab.race.report.lanes` returns."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "lanes.html.j2").read_text("utf-8"))
    style = Markup((folder / "player.css").read_text("utf-8"))  # noqa: S704  a file of this package
    script = Markup((folder / "lanes.js").read_text("utf-8"))  # noqa: S704  a file of this package
    return template.render(race=race, style=style, script=script, data=Markup(embedded(race)))  # noqa: S704  escaped
