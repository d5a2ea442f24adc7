"""The results as one page that needs no network: the template and the style are files beside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from trapline.cost import tables
from trapline.cost.models import CostModel
from trapline.cost.plots import Plot
from trapline.cost.rows import Row
from trapline.cost.tables import Table


class _Picture(NamedTuple):
    name: str
    title: str
    light: str
    dark: str


def page(
    rows: Sequence[Row], machines: Sequence[CostModel], plots: Sequence[Plot], *, plotless: str = "",
    more: Sequence[Table] = (),
) -> str:  # fmt: skip
    """Return the page.  `plotless` says why there are no plots; `more` are further tables."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "page.html.j2").read_text("utf-8"))
    isas = list(dict.fromkeys(row.isa for row in rows))
    return template.render(
        title="What a probe costs",
        summary=f"{len(rows)} measurements on {', '.join(isas)}, by trapline bench.",
        isas=isas,
        plots=_pictures(plots),
        plotless=plotless,
        tables=[tables.hits(rows), tables.idle(rows, machines), tables.models(machines), *more],
        style=Markup((folder / "page.css").read_text("utf-8")),  # noqa: S704  a file of this package
        script=Markup((folder / "page.js").read_text("utf-8")),  # noqa: S704
    )


def _pictures(plots: Sequence[Plot]) -> list[_Picture]:
    themes = {(plot.name, plot.theme): plot for plot in plots}
    names = dict.fromkeys(plot.name for plot in plots)
    return [
        _Picture(name, themes[name, "light"].title, _address(themes[name, "light"]), _address(themes[name, "dark"]))
        for name in names
    ]


def _address(plot: Plot) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(plot.pictures['svg']).decode('ascii')}"
