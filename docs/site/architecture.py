"""The picture of docs/architecture.md, made from the page's own tables.

`make docs` writes docs/architecture.svg anew, and so does `python docs/site/architecture.py`.  A
table below a heading such as "### `emu`: ..." becomes a frame, and each of its rows a box: the
folder, one line about it, and the folders of the same frame that it imports.  An arrow that others
imply is not drawn.  With --imports the rows are first made those of the tree: a new folder gets a
row whose line is to be written, and the imports are those of the modules.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGE: Final = DOCS / "architecture.md"
PICTURE: Final = DOCS / "architecture.svg"

# Pixels.
_BOX: Final = 194
_COLUMNS: Final = 3
_SPACE: Final = 14
_LANE: Final = 6
_BETWEEN_LEVELS: Final = 30
_BETWEEN_FRAMES: Final = 40
_PADDING: Final = 20
_HEADING: Final = 34
_LINE: Final = 15
_WIDTH: Final = 720
# Characters of a box's line.
_CHARACTERS: Final = 25
# Passes that move each box towards those that it is joined to.
_SWEEPS: Final = 8

_STYLE: Final = """
svg { --paper: #ffffff; --frame: #f1f4f8; --box: #ffffff; --edge: #aab4c0; --text: #1b1f24; --soft: #57606a;
  --arrow: #0b57a4; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { svg { --paper: #15181d; --frame: #1e232a; --box: #2a3038; --edge: #5a6572;
  --text: #eceff3; --soft: #b3bcc7; --arrow: #7db7f5; } }
text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 12px; fill: var(--soft); }
.name { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 14px; font-weight: 600; }
.name { fill: var(--text); }
.paper { fill: var(--paper); } .frame { fill: var(--frame); stroke: var(--edge); }
.box { fill: var(--box); stroke: var(--edge); } .head { fill: var(--arrow); }
.arrow { fill: none; stroke: var(--arrow); stroke-width: 1.3; } .layer { stroke-width: 3; }
""".strip()


class CircleError(Exception):
    """Folders import each other; the message names them."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A row of a table."""

    name: str
    text: str
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A table: a package, what it is, and its folders."""

    name: str
    text: str
    folders: tuple[Folder, ...]


def layers(page: str) -> list[Layer]:
    """Return the tables of the page, from the top of the picture to its bottom."""
    found = []
    for name, text, body in re.findall(r"^### `(\w+)`: ([^\n]+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| `(\w+)` +\| ([^|]+) \|([^|]*)\|$", body, re.MULTILINE)
        folders = (Folder(row, line.strip(), tuple(re.findall(r"`(\w+)`", imports))) for row, line, imports in rows)
        found.append(Layer(name, text, tuple(folders)))
    return found


def tree() -> dict[str, dict[str, set[str]]]:
    """Return the folders of each layer of the tree, each with those of the layer that it imports."""
    import grimp  # noqa: PLC0415  the hook of mkdocs needs none

    names = [layer.name for layer in layers(PAGE.read_text("utf-8"))]
    graph = grimp.build_graph(*names, cache_dir=None)
    found = {}
    for name in names:
        # Of D: trapline/dlib.
        holding = {path.parent for pattern in ("*/*.py", "*/*/*.d") for path in (ROOT / name).glob(pattern)}
        folders = sorted({path.relative_to(ROOT / name).parts[0] for path in holding})
        imports: dict[str, set[str]] = {folder: set() for folder in folders}
        for module in graph.modules:
            parts = module.split(".")
            if parts[0] == name and parts[1:] and parts[1] in imports:
                targets = (one.split(".") for one in graph.find_modules_directly_imported_by(module))
                imports[parts[1]] |= {one[1] for one in targets if one[0] == name and one[1:] and one[1] in imports}
                imports[parts[1]].discard(parts[1])
        found[name] = imports
    return found


def with_imports(page: str, found: Mapping[str, Mapping[str, Iterable[str]]]) -> str:
    """Return the page with the rows of these folders."""
    for layer in layers(page):
        texts = {one.name: one.text for one in layer.folders}
        rows = [("folder", "what is in it", "imports")]
        for folder, imports in found[layer.name].items():
            rows.append((f"`{folder}`", texts.get(folder, "?"), ", ".join(f"`{one}`" for one in sorted(imports))))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
        lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
        table = "\n".join(lines) + "\n"
        heading = f"### `{layer.name}`: {layer.text}\n"
        before, after = page.split(heading)
        page = before + heading + re.sub(r"\n(\|[^\n]*\n)+", lambda _, table=table: "\n" + table, after, count=1)
    return page


def reduced(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return the arrows that no others imply.  Raises `CircleError`."""
    below: dict[str, set[str]] = {}
    for name in _from_below(imports):
        below[name] = {*imports[name]}.union(*(below[one] for one in imports[name]))
    return {
        name: {one for one in imports[name] if not any(one in below[other] for other in imports[name])}
        for name in imports
    }


def _from_below(imports: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield each folder after those that it imports."""
    waiting = {name: set(its) for name, its in imports.items()}
    while waiting:
        free = [name for name, its in waiting.items() if not its & waiting.keys()]
        if not free:
            raise CircleError(f"these import each other: {', '.join(sorted(waiting))}")
        for name in free:
            del waiting[name]
            yield name


def levels(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the folders of each level, the lowest first; an arrow leads to a lower level."""
    rows: list[list[str]] = []
    height: dict[str, int] = {}
    joined = {name for name, its in arrows.items() if its} | {one for its in arrows.values() for one in its}
    order = [*_from_below(arrows)]
    for name in sorted(order, key=lambda one: one not in joined):  # those without arrows fill the rows
        level = max((height[one] + 1 for one in arrows[name]), default=0)
        while level < len(rows) and len(rows[level]) == _COLUMNS:
            level += 1
        if level == len(rows):
            rows.append([])
        rows[level].append(name)
        height[name] = level
    return rows


class Drawing:
    """One frame: its boxes on levels, and lanes for the arrows that pass a level."""

    def __init__(self, layer: Layer) -> None:
        self._texts = {one.name: textwrap.wrap(one.text, _CHARACTERS) for one in layer.folders}
        self._arrows = reduced({one.name: one.imports for one in layer.folders})
        self._rows = levels(self._arrows)
        self._level = {name: level for level, row in enumerate(self._rows) for name in row}
        # An arrow as the names on its way: the boxes at its ends, and its lane on each level between.
        self._ways = [[*self._way(name, one)] for name in self._arrows for one in sorted(self._arrows[name])]
        for way in self._ways:
            for down, lane in enumerate(way[1:-1], 1):
                self._rows[self._level[way[0]] - down].append(lane)
        self._sort()
        self._middle = {name: x for row in self._rows for name, x in _middles(row)}
        heights = [max(self._height(name) for name in row) for row in self._rows]
        self.height = _HEADING + sum(heights) + _BETWEEN_LEVELS * (len(heights) - 1) + _PADDING
        self._top = {}
        y = _HEADING
        for row, height in reversed([*zip(self._rows, heights, strict=True)]):
            self._top.update(dict.fromkeys(row, y))
            y += height + _BETWEEN_LEVELS
        self._level_height = {name: height for row, height in zip(self._rows, heights, strict=True) for name in row}

    def _way(self, name: str, target: str) -> Iterator[str]:
        yield name
        yield from (f"{name} {target} {level}" for level in range(self._level[name] - 1, self._level[target], -1))
        yield target

    def _height(self, name: str) -> int:
        return 30 + _LINE * len(self._texts[name]) if name in self._texts else 0

    def _sort(self) -> None:
        """Move each box and lane towards the middle of what it is joined to."""
        joined: dict[str, list[str]] = {name: [] for row in self._rows for name in row}
        for way in self._ways:
            for upper, lower in pairwise(way):
                joined[upper].append(lower)
                joined[lower].append(upper)
        for sweep in range(_SWEEPS):
            for row in self._rows if sweep % 2 else reversed(self._rows):
                middle = {name: x for every in self._rows for name, x in _middles(every)}

                def wanted(name: str, middle: dict[str, float] = middle) -> float:
                    ends = [middle[one] for one in joined[name]]
                    return sum(ends) / len(ends) if ends else middle[name]

                row.sort(key=wanted)

    def svg(self, y: float) -> Iterator[str]:
        """Yield the arrows and then the boxes, for a frame whose top is at `y`."""
        for way in self._ways:
            yield self._arrow(way, y)
        for name, text in self._texts.items():
            x, top = self._middle[name] - _BOX / 2, self._top[name] + y
            yield _rectangle("box", x, top, _BOX, self._height(name))
            yield f'<text class="name" x="{x + 10:.0f}" y="{top + 20:.0f}">{escape(name)}</text>'
            for number, line in enumerate(text):
                yield f'<text x="{x + 10:.0f}" y="{top + 37 + _LINE * number:.0f}">{escape(line)}</text>'

    def _arrow(self, way: Sequence[str], y: float) -> str:
        x, bottom = self._port(way[0], way), self._top[way[0]] + self._height(way[0]) + y
        path = f"M{x:.0f},{bottom:.0f}"
        for name in way[1:]:
            top = self._top[name] + y
            to = self._port(name, way) if name == way[-1] else self._middle[name]
            path += f" C{x:.0f},{(bottom + top) / 2:.0f} {to:.0f},{(bottom + top) / 2:.0f} {to:.0f},{top:.0f}"
            x, bottom = to, top + self._level_height[name]
            if name != way[-1]:
                path += f" V{bottom:.0f}"
        return f'<path class="arrow" d="{path}" marker-end="url(#head)"/>'

    def _port(self, name: str, way: Sequence[str]) -> float:
        """Return where an arrow leaves or reaches a box: in the order of the other ends."""
        first = name == way[0]
        others = [one for one in self._ways if one[0 if first else -1] == name]
        others.sort(key=lambda one: self._middle[one[1 if first else -2]])
        return self._middle[name] - _BOX / 2 + _BOX * (others.index([*way]) + 1) / (len(others) + 1)


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="7"/>'


def _middles(row: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield the middle of each box and lane of a level; the level is in the middle of the picture."""
    widths = [_LANE if " " in name else _BOX for name in row]
    x = (_WIDTH - sum(widths) - _SPACE * (len(row) - 1)) / 2
    for name, width in zip(row, widths, strict=True):
        yield name, x + width / 2
        x += width + _SPACE


def picture(page: str) -> str:
    """Return the SVG for the text of the page.  Raises `CircleError`."""
    body, y, places = [], float(_PADDING), []
    for layer in layers(page):
        drawing = Drawing(layer)
        places.append((y, y + drawing.height))
        body += [
            _rectangle("frame", _PADDING, y, _WIDTH - 2 * _PADDING, drawing.height),
            f'<text class="name" x="{_PADDING + 14}" y="{y + 22:.0f}">{layer.name}/</text>',
            f'<text x="{_PADDING + 14 + 9 * (len(layer.name) + 2)}" y="{y + 22:.0f}">{escape(layer.text)}</text>',
            *drawing.svg(y),
        ]
        y += drawing.height + _BETWEEN_FRAMES
    for (_, bottom), (top, _) in pairwise(places):
        line = f"M{_WIDTH // 2},{bottom:.0f} V{top - 6:.0f}"
        body.append(f'<path class="arrow layer" d="{line}" marker-end="url(#big)"/>')
        body.append(f'<text x="{_WIDTH // 2 + 12}" y="{(bottom + top) / 2 + 4:.0f}">imports</text>')
    height = y - _BETWEEN_FRAMES + _PADDING
    size = f'viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" height="{height:.0f}"'
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}" markerHeight="{size}"'
        ' markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0,0 L8,4 L0,8 z"/></marker>'
        for name, size in (("head", 8), ("big", 14))
    )
    names = ", ".join(f"{layer.name} ({', '.join(one.name for one in layer.folders)})" for layer in layers(page))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>The folders of Trapline, and what imports what</title>\n<desc>{names}</desc>",
            f"<style>{_STYLE}</style>\n<defs>{heads}</defs>",
            f'<rect class="paper" width="{_WIDTH}" height="{height:.0f}"/>',
            *body,
            "</svg>\n",
        )
    )


def on_pre_build(**_: Any) -> None:
    """Write the picture, if the page has changed (a hook of mkdocs)."""
    made = picture(PAGE.read_text("utf-8"))
    if not PICTURE.exists() or PICTURE.read_text("utf-8") != made:
        PICTURE.write_text(made, "utf-8")


if __name__ == "__main__":
    if "--imports" in sys.argv:
        sys.path.insert(0, str(ROOT))
        PAGE.write_text(with_imports(PAGE.read_text("utf-8"), tree()), "utf-8")
    on_pre_build()
