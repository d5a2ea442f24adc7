"""The report of `trapline check`: as text, JSON, JUnit XML, or a page.

All forms have the same content, which they take from `facts`.
"""

from __future__ import annotations

from typing import Final

from trapline.lab.check.report import as_json, html, junit, text
from trapline.lab.check.results import Tally
from trapline.lab.report_files import ReportForms

FORMS: Final[ReportForms[Tally]] = ReportForms(
    {".txt": text.as_text, ".json": as_json.as_json, ".xml": junit.as_junit, ".html": html.as_html}
)

__all__ = ["FORMS"]
