"""Plots of the results: stacked bars by part, prices by machine, and scaling curves.

They need matplotlib (`pip install 'trapline[plots]'`).  Each is drawn in a light and a dark theme.
"""

from __future__ import annotations

import importlib.util
import io
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from trapline.cost.hit_work import Events
from trapline.cost.models import CostModel, of_isa
from trapline.cost.rows import Part, Row
from trapline.cost.scale import AXES, Curve

THEMES: Final = ("light", "dark")
FORMATS: Final = ("svg", "png")
_INK: Final = {"light": "#1b1b1b", "dark": "#f2f2f2"}
_PAPER: Final = {"light": "#ffffff", "dark": "#16181c"}
_GRID: Final = {"light": "#d9d9d9", "dark": "#3a3f47"}
# Colours that people who do not see all colours can tell apart, on both papers (Okabe and Ito).
_PARTS: Final[Mapping[Part, str]] = {
    Part.ENTRY: "#0072b2",
    Part.DISPATCH: "#56b4e9",
    Part.ARGUMENTS: "#009e73",
    Part.DISPLACED: "#d55e00",
    Part.RETURN: "#e69f00",
}
_EVENTS: Final = {"traps": "#0072b2", "steps": "#d55e00", "returns": "#009e73", "jumps": "#cc79a7"}
_CURVES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKS: Final = "os^D"
_ROW: Final = 0.24
_WIDTH: Final = 9.0
_HEAD: Final = 1.1


class PlotError(Exception):
    """Plots cannot be drawn; the message says why."""


class Plot(NamedTuple):
    """A drawn plot."""

    name: str
    title: str
    theme: str
    pictures: Mapping[str, bytes]
    """The content of the files of the plot, by format."""


def check() -> None:
    """Raise `PlotError` if there is no matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PlotError("plots need matplotlib (pip install 'trapline[plots]')")


def draw(rows: Sequence[Row], curves: Sequence[Curve], machines: Sequence[CostModel]) -> list[Plot]:
    """Return all plots in both themes.  Raises `PlotError` without matplotlib."""
    check()
    import matplotlib as mpl  # noqa: PLC0415  only the user of plots waits for it, or needs it

    mpl.use("Agg")
    drawn = []
    for theme in THEMES:
        with _themed(mpl, theme):
            for name, title, figure in _figures(rows, curves, machines):
                pictures = {kind: _picture(figure, kind) for kind in FORMATS}
                drawn.append(Plot(name, title, theme, pictures))
    return drawn


def save(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Write each plot as `NAME-THEME.FORMAT`, and return the files.  Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        for kind, data in plot.pictures.items():
            path = folder / f"{plot.name}-{plot.theme}.{kind}"
            path.write_bytes(data)
            written.append(path)
    return written


@contextmanager
def _themed(mpl: Any, theme: str) -> Iterator[None]:
    ink, paper, grid = _INK[theme], _PAPER[theme], _GRID[theme]
    settings = {
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": grid,
        "axes.facecolor": paper,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": grid,
        "xtick.color": ink,
        "ytick.color": ink,
        "figure.facecolor": paper,
        "savefig.facecolor": paper,
        "legend.frameon": False,
        "font.size": 9,
        # Text stays text, and the same results give the same bytes.
        "svg.fonttype": "none",
        "svg.hashsalt": "trapline",
    }
    with mpl.rc_context(settings):
        yield


def _picture(figure: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(stream, format=kind, dpi=150, bbox_inches="tight", metadata=metadata)
    return stream.getvalue()


def _figures(
    rows: Sequence[Row], curves: Sequence[Curve], machines: Sequence[CostModel]
) -> Iterator[tuple[str, str, Any]]:
    executed = [row for row in rows if row.modelled and any(row.anatomy.parts.values())]
    if executed:
        yield "parts", "Instructions of one hit, by part, where the guest's kernel executes it", _parts(executed)
    priced = [(row, machine) for row in rows for machine in of_isa(machines, row.isa) if machine.knows(row.events)]
    if priced:
        yield "prices", "Nanoseconds of one hit on bare metal, by the models", _prices(priced)
    if curves:
        yield (
            "scaling",
            "The cost of a call against the number of probes, sites, processes, consumers",
            _scaling(curves),
        )


def _parts(rows: Sequence[Row]) -> Any:
    labels = [f"{row.isa}  {row.mechanism} {row.what.partition(':')[0]}" for row in rows]
    values = {part.value: [row.anatomy.parts.get(part, 0) for row in rows] for part in Part}
    colours = {part.value: colour for part, colour in _PARTS.items()}
    return _bars(labels, values, colours, "instructions of the guest")


def _prices(priced: Sequence[tuple[Row, CostModel]]) -> Any:
    found: dict[tuple[str, Events], tuple[list[Row], Sequence[float]]] = {}
    for row, machine in priced:
        prices = (machine.trap, machine.step, machine.returns, machine.jump or 0.0)
        costs = [number * price for number, price in zip(row.events, prices, strict=True)]
        found.setdefault((machine.name, row.events), ([], costs))[0].append(row)
    ordered = sorted(found.items(), key=lambda one: (one[0][0], sum(one[1][1])))
    bars = Counter((machine, name) for (machine, _), (rows, _) in ordered for name in {row.mechanism for row in rows})
    labels = [
        f"{machine}  {', '.join(_named(rows, {name for of, name in bars if of == machine and bars[of, name] > 1}))}"
        for (machine, _), (rows, _) in ordered
    ]
    scale = {machine.name: machine.scale for _, machine in priced}
    values = {
        kind: [costs[index] * scale[machine] for (machine, _), (_, costs) in ordered]
        for index, kind in enumerate(_EVENTS)
    }
    return _bars(labels, values, _EVENTS, "nanoseconds")


def _named(rows: Sequence[Row], several: set[str]) -> Iterator[str]:
    """Yield the mechanisms of a bar; of one that has several bars, the rows that this one is for."""
    for name in dict.fromkeys(row.mechanism for row in rows):
        whats = dict.fromkeys(row.what.partition(":")[0] for row in rows if row.mechanism == name)
        yield f"{name} ({', '.join(whats)})" if name in several else name


def _bars(labels: Sequence[str], values: Mapping[str, Sequence[float]], colours: Mapping[str, str], unit: str) -> Any:
    """Draw stacked bars, one below the other."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(_WIDTH, _HEAD + _ROW * len(labels)))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    left, last = [0.0] * len(labels), None
    positions = range(len(labels))
    for name, lengths in values.items():
        if any(lengths):
            last = axes.barh(positions, lengths, left=left, color=colours[name], label=name, height=0.72)
        left = [start + length for start, length in zip(left, lengths, strict=True)]
    assert last is not None
    axes.bar_label(last, labels=[f"{total:.0f}" for total in left], padding=3)
    axes.set_yticks(positions, labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel(unit)
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=len(values))
    return figure


def _scaling(curves: Sequence[Curve]) -> Any:
    """Draw the curves: instructions above, this emulator's time below."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(_WIDTH, 6.0))
    figure.set_layout_engine("constrained")
    names = list(dict.fromkeys(curve.isa for curve in curves))
    panels = figure.subplots(2, len(AXES), sharey="row")
    for column, (axis, title) in enumerate(AXES.items()):
        for curve in curves:
            if curve.axis != axis:
                continue
            index = names.index(curve.isa)
            numbers = [point.number for point in curve.points]
            for panel, costs in (
                (panels[0][column], [point.instructions for point in curve.points]),
                (panels[1][column], [point.nanoseconds / 1e3 for point in curve.points]),
            ):
                panel.plot(
                    numbers, costs, _MARKS[index % len(_MARKS)] + "-", ms=4, color=_CURVES[index], label=curve.isa
                )
        for panel in (panels[0][column], panels[1][column]):
            panel.set_xscale("log")
            ticks = sorted({point.number for curve in curves if curve.axis == axis for point in curve.points})
            panel.set_xticks(ticks, [str(tick) for tick in ticks])
            panel.minorticks_off()
        panels[0][column].set_title(axis)
        panels[0][column].set_yscale("log")
        panels[1][column].set_xlabel(textwrap.fill(title, 20))
    panels[1][0].set_ylim(bottom=0)  # of all columns; earlier it would cut off later curves
    panels[0][0].set_ylabel("instructions of a call")
    panels[1][0].set_ylabel("microseconds in this emulator")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(names))
    return figure
