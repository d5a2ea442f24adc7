"""Tables for notebooks: results show themselves as HTML there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell: its lines, the first of which may stand out."""

    lines: tuple[str, ...]
    code: bool = False
    bold: bool = False
    """Whether the first line stands out."""
    title: str = ""
    """The text that is shown when the mouse is over it."""


def code(text: str) -> Cell:
    """Return a cell of code."""
    return Cell((text,), code=True)


def html_table(head: Sequence[str], rows: Iterable[Sequence[Cell]], after: str = "") -> str:
    """Return a table with a heading for each column, and a line of text after it."""
    heading = "".join(f"<th>{escape(one)}</th>" for one in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    end = f"<p>{escape(after)}</p>" if after else ""
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>{end}"


def _cell(cell: Cell) -> str:
    lines = [escape(line) for line in cell.lines]
    if cell.bold and lines:
        lines[0] = f"<b>{lines[0]}</b>"
    text = "<br>".join(lines)
    title = f' title="{escape(cell.title, quote=True)}"' if cell.title else ""
    return f"<td{title}>{f'<code>{text}</code>' if cell.code else text}</td>"
