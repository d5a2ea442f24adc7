"""The report of a check of the user's objects: text, JSON, a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, TypeVar

from rich.text import Text

from emu.support.did_you_mean import counted
from trapline.lab.html_table import Cell, code, html_table
from trapline.lab.objects.findings import Coverage, Difference, ObjectReport
from trapline.lab.report_files import ReportForms

_Found = TypeVar("_Found")
# The number of causes, or failures, of one kind that the text shows.
_SHOWN: Final = 20
# The kinds of differences, the most severe first: wrong results, wrong decisions, what is written elsewhere or not.
_SEVERITY: Final = ("simulated", "displaced", "decoded", "only theirs", "differs", "arguments", "only ours")
_RANGES: Final = 8
# The singular of what a report counts, where it has one.
_SINGULAR: Final = {
    "displaced instructions": "displaced instruction",
    "encodings": "encoding",
    "executed as copies": "executed as a copy",
    "firings": "firing",
    "functions": "function",
    "made encodings": "made encoding",
    "made functions": "made function",
    "sites in both": "site in both",
    "sites patched": "site patched",
}


def lines(report: ObjectReport) -> Iterator[Text]:
    """Yield the report as lines of text."""
    target = f" on {report.target}" if report.target else ""
    yield Text(f"{report.objects} ({report.isa}, {report.glue}){target}", "bold")
    if report.counts:
        yield Text(f"  {counts_text(report)}")
    for note in report.notes:
        yield Text(f"  {note}", "dim")
    for kind, causes in _by_kind(report.differences).items():
        number = sum(map(len, causes))
        yield Text(
            f"{kind}: {number:,}" + (f", of {counted(len(causes), 'cause')}" * (number > len(causes))), "bold red"
        )
        yield from _shown(
            [(found, difference_text(min(found, key=lambda one: len(one.instruction)))) for found in causes]
        )
    if report.failures:
        yield Text(f"failures: {len(report.failures):,}", "bold red")
        yield from _shown(
            [
                (found, failure_text(found[0].subject, found[0].what, found[0].where, found[0].code))
                for found in _alike(report.failures, lambda one: (one.what, one.where))
            ]
        )
    if report.accesses:
        yield Text(f"bad accesses to memory: {counted(len(report.accesses), 'place')}", "bold red")
        for access in report.accesses:
            first = f"first while it examined {access.subject}" if access.subject else "first"
            size, times = counted(access.size, "byte"), counted(access.count, "time")
            yield Text(f"  {access.where}: {access.what}, {size}, {times}, {first}")
    for file in report.coverage:
        yield Text(f"  lines of {file.file} that ran: {_percent(file)}", "dim")
    for sentence in report.omitted:
        yield Text(f"  left out: {sentence}", "dim")
    yield Text("the same" if report.same else "not the same", "bold green" if report.same else "bold red")


def counts_text(report: ObjectReport) -> str:
    """Return what a report counts, on one line."""
    return ", ".join(
        f"{count:,} {_SINGULAR.get(what, what) if count == 1 else what}" for what, count in report.counts.items()
    )


def difference_text(one: Difference) -> str:
    """Return the sentence about a difference."""
    where = f" [{one.where}]" if one.where else ""
    return f"{'  '.join(filter(None, (one.place, one.probe, one.instruction)))}: {one.what}{where}"


def failure_text(subject: str, what: str, where: str, code: bytes) -> str:
    """Return the sentence about a failure."""
    bytes_text = f"; bytes {code.hex(' ')}" if code else ""
    return "".join((f"{subject}: " if subject else "", what, f" at {where}" if where else "", bytes_text))


def _by_kind(differences: Sequence[Difference]) -> Mapping[str, list[list[Difference]]]:
    """Return the differences of each cause by kind, the most severe kind first."""
    kinds: dict[str, list[list[Difference]]] = {}
    for found in sorted(_alike(differences, lambda one: one.cause), key=lambda one: _SEVERITY.index(one[0].kind)):
        kinds.setdefault(found[0].kind, []).append(found)
    return kinds


def _alike(found: Sequence[_Found], cause: Callable[[_Found], Hashable]) -> list[list[_Found]]:
    """Return findings by their cause, the most frequent cause first."""
    causes: dict[Hashable, list[_Found]] = {}
    for one in found:
        causes.setdefault(cause(one), []).append(one)
    return sorted(causes.values(), key=len, reverse=True)


def _shown(causes: Sequence[tuple[Sequence[object], str]]) -> Iterator[Text]:
    """Yield a line for each of the first causes, from its findings and the text of one."""
    for found, text in causes[:_SHOWN]:
        yield Text(f"  {f'{len(found):,} times, such as ' if len(found) > 1 else ''}{text}")
    if len(causes) > _SHOWN:
        yield Text(f"  ... and {counted(len(causes) - _SHOWN, 'more cause')} (--report FILE.json has all)", "dim")


def _percent(one: Coverage) -> str:
    """Return the percentage of a file's lines that ran, and the numbers of the other lines."""
    text = f"{one.lines - len(one.missed)} of {one.lines} ({one.percent:.0f} %)"
    shown = ", ".join(map(str, one.missed[:_RANGES])) + (", ..." if len(one.missed) > _RANGES else "")
    return f"{text}; not {shown}" if one.missed else text


def as_text(report: ObjectReport) -> str:
    """Return the report as plain text."""
    return "".join(f"{line.plain}\n" for line in lines(report))


def as_json(report: ObjectReport) -> str:
    """Return the report as JSON."""
    return json.dumps(report.as_data(), indent=1) + "\n"


def as_html(report: ObjectReport) -> str:
    """Return the report as a page."""
    rows = [
        (
            Cell((one.kind,)),
            Cell((one.place,)),
            Cell((one.probe,)),
            code(one.instruction),
            Cell((one.what, *([one.where] if one.where else ()))),
        )
        for one in report.differences
    ]
    table = html_table(("kind", "place", "probe", "instruction", "what"), rows) if rows else ""
    title = escape(f"{report.objects} on {report.isa}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .6em;text-align:left;"
        "border-bottom:1px solid #ccc}</style>"
        f"<h1>{title}</h1><pre>{escape(as_text(report))}</pre>{table}</html>\n"
    )


FORMS: Final[ReportForms[ObjectReport]] = ReportForms({".txt": as_text, ".json": as_json, ".html": as_html})
