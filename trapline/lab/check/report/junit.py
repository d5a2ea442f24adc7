"""The report as JUnit XML, for CI systems.

A test suite for each file and provider: a test case for each site that diverged (a failure) or
crashed the emulator (an error), one for all that agreed, and one, skipped, for those that were
refused.  Runs and sweeps of decode tables are suites of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree as ET

from emu.support.did_you_mean import counted
from emu.support.one_line import one_line
from trapline.lab.check.report import facts
from trapline.lab.check.report.facts import Trouble
from trapline.lab.check.report.text import trouble_text
from trapline.lab.check.results import Tally
from trapline.lab.check.site.compare import Outcome

_TAGS: Final = {Outcome.DIVERGED: "failure", Outcome.CRASHED: "error", Outcome.FAILED: "error"}
_SKIPPED: Final = {
    Outcome.REFUSED: "no probe is allowed there",
    Outcome.UNREPEATABLE: "instructions that do not give the same result twice",
}


def as_junit(tally: Tally) -> str:
    """Return the report."""
    root = ET.Element("testsuites", name="trapline check")
    root.extend(_suites(tally))
    _count(root, root.iter("testcase"))
    root.set("time", f"{tally.seconds:.3f}")
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suites(tally: Tally) -> Iterator[ET.Element]:
    bad: dict[tuple[str, str], list[Trouble]] = {}
    for trouble in facts.troubles(tally):
        bad.setdefault((trouble.file, trouble.provider), []).append(trouble)
    for place in sorted({*tally.files, *bad}):
        yield _suite(f"{place[0]} ({place[1]})", _sites(place, tally.files.get(place, Counter()), bad.get(place, [])))
    if tally.runs:
        yield _suite("runs", _runs(tally))
    if tally.encodings:
        yield _suite("encodings", _encodings(tally))


def _suite(name: str, cases: Iterable[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=one_line(name))
    suite.extend(cases)
    _count(suite, suite.iter("testcase"))
    return suite


def _count(element: ET.Element, cases: Iterable[ET.Element]) -> None:
    counts = Counter(next((child.tag for child in case if child.tag != "system-out"), "passed") for case in cases)
    element.set("tests", str(counts.total()))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(counts[tag]))


def _sites(place: tuple[str, str], outcomes: Counter[Outcome], bad: Iterable[Trouble]) -> Iterator[ET.Element]:
    group = f"{place[0]}.{place[1]}"
    for trouble in bad:
        what = trouble.result.outcome
        case = _case(group, trouble.title)
        message = f"{what.value}: {trouble.instruction} ({trouble.result.why})"
        _child(case, _TAGS[what], message, trouble_text(trouble), type=what.value)
        yield case
    if count := outcomes[Outcome.AGREED]:
        case = _case(group, f"{counted(count, 'site')} agreed")
        yield case
    for outcome, why in _SKIPPED.items():
        if count := outcomes[outcome]:
            case = _case(group, f"{counted(count, 'site')} {outcome.value}")
            _child(case, "skipped", why)
            yield case


def _runs(tally: Tally) -> Iterator[ET.Element]:
    for run in tally.runs:
        case = _case("runs", run.name)
        if not run.passed:
            message = run.culprit or ("no probe fired" if run.same else "the patched run is not the same")
            _child(case, "failure", message, "\n".join(run.differences), type="idle" if run.same else "diverged")
        _child(case, "system-out", text=f"{counted(run.instructions, 'instruction')}, {counted(run.fired, 'firing')}")
        yield case


def _encodings(tally: Tally) -> Iterator[ET.Element]:
    for one in facts.encodings(tally):
        case = _case("encodings", one.title)
        if not one.same:
            message = (
                f"{len(one.disagreements)} kinds of disagreement, {counted(len(one.unreached), 'row')} never reached"
            )
            told = [*(f"never reached: {row}" for row in one.unreached), *one.disagreements]
            _child(case, "failure", message, "\n".join(told), type="diverged")
        _child(case, "system-out", text=counted(one.encodings, "encoding"))
        yield case


def _case(group: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=one_line(group), name=one_line(name))


def _child(case: ET.Element, tag: str, message: str = "", text: str = "", **attributes: str) -> None:
    child = ET.SubElement(case, tag, {"message": one_line(message)} if message else {}, **attributes)
    child.text = one_line(text, "\n") or None
