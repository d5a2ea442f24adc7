"""Recordings as one HTML page: the template, the script and the style are files of this package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from trapline.lab.step.recording import Recording


@dataclass(frozen=True, slots=True)
class Played:
    """A recording with the label of its tab."""

    label: str
    recording: Recording
    note: str = ""
    """The text above its steps."""
    good: bool | None = None
    """Whether it is the right one of two; None: there is nothing to compare."""


def page(played: Sequence[Played], title: str = "") -> str:
    """Return a page that plays recordings; those of several ISAs are aligned by their stages."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "player.html.j2").read_text("utf-8"))
    return template.render(
        title=title or _title(played),
        played=played,
        style=Markup((folder / "player.css").read_text("utf-8")),  # noqa: S704  a file of this package
        script=Markup((folder / "player.js").read_text("utf-8")),  # noqa: S704
        data=Markup(embedded([_data(one) for one in played])),  # noqa: S704  escaped by `embedded`
    )


def embedded(value: Any) -> str:
    """Return JSON that may stand in a script element: it has no `<`."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _title(played: Sequence[Played]) -> str:
    recording = played[0].recording
    probe = recording.firings[0].probe if recording.firings else recording.clause
    return f"{probe} on {', '.join(dict.fromkeys(one.recording.isa for one in played))}"


def _data(one: Played) -> dict[str, Any]:
    return {"label": one.label, "note": one.note, "good": one.good, **one.recording.data()}
