"""The report of `trapline check`: as text, JSON, JUnit XML, or a page.

The suffix of the output file selects the form (`WRITERS`).  All have the same content, which they
take from `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from trapline.lab.check.report import as_json, html, junit, text
from trapline.lab.check.results import Tally

Writer = Callable[[Tally], str]

# Suffix of a file -> the function that makes its content.
WRITERS: Final[Mapping[str, Writer]] = {
    ".txt": text.as_text,
    ".json": as_json.as_json,
    ".xml": junit.as_junit,
    ".html": html.as_html,
}


class ReportError(Exception):
    """A report that cannot be written: the message says why, on one line."""


def writer(path: str | Path) -> Writer:
    """Return the writer of reports for a file name.

    Raises `ReportError`: call it before a long check.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise ReportError(f"{path}: cannot write reports as '{suffix}'; name a file that ends in {', '.join(WRITERS)}")
    return WRITERS[suffix]


def write(tally: Tally, path: str | Path) -> None:
    """Write a report into a file, in the form of its suffix.  Raises `ReportError`."""
    content = writer(path)(tally)
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{path}: {(error.strerror or str(error)).lower()}") from None


__all__ = ["WRITERS", "ReportError", "Writer", "write", "writer"]
