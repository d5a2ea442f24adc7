"""The report as one HTML page: no scripts, nothing loaded, readable without colours.

The page is built as a tree of elements, so that the names of files and functions are always text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from emu.support.did_you_mean import counted
from emu.support.one_line import one_line
from trapline.lab.check.report import facts
from trapline.lab.check.report.facts import Trouble
from trapline.lab.check.results import Tally
from trapline.lab.check.site.compare import WHY_LEFT_OUT, Divergence, Outcome
from trapline.version import installed_version

STYLE: Final = """
:root { color-scheme: light dark;
  --page: #f7f7f5; --card: #fff; --ink: #1d2126; --dim: #5c6670; --line: #dcdfe2; --code: #f0f1ef;
  --agreed: #2b7a4b; --diverged: #c0262d; --refused: #b57d0a; --unrepeatable: #3a6fa5; --crashed: #7d3c98; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --card: #1c2024; --ink: #e4e7ea; --dim: #98a2ac; --line: #343a41; --code: #262b30;
  --agreed: #4fb477; --diverged: #f2686d; --refused: #e0ad45; --unrepeatable: #74a9dd; --crashed: #c08ad6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1rem; font-weight: 600; color: var(--dim); margin: 0; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: .9rem; margin: 1.1rem 0 .35rem; font-weight: 600; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
a { color: inherit; }
.verdict { font-size: 1.5rem; line-height: 1.3; font-weight: 650; margin: .25rem 0 .75rem; }
.verdict.same { color: var(--agreed); } .verdict.different { color: var(--diverged); }
.dim, caption, .kind { color: var(--dim); } .kind { font-weight: 400; }
code, pre, .mono td, td.mono { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: .88em; }
pre { background: var(--code); padding: .55rem .75rem; border-radius: 5px; margin: .6rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
dl.facts { display: flex; flex-wrap: wrap; gap: .1rem 1.5rem; margin: .5rem 0 0; font-size: .9rem; }
dl.facts div { display: flex; gap: .4rem; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
.bar { display: block; width: 100%; height: 1.6rem; border-radius: 4px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; margin: .6rem 0 0; }
.legend svg { width: .8em; height: .8em; margin-right: .45em; }
.legend b { font-variant-numeric: tabular-nums; }
.agreed { fill: var(--agreed); } .diverged { fill: var(--diverged); } .refused { fill: var(--refused); }
.unrepeatable { fill: var(--unrepeatable); } .crashed { fill: var(--crashed); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 7px; padding: 1rem 1.2rem; }
.card + .card { margin-top: 1rem; }
.trouble { border-left: 4px solid var(--diverged); } .trouble.of-crashed { border-left-color: var(--crashed); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; padding-bottom: .3rem; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
tr:last-child > * { border-bottom: 0; }
thead th { color: var(--dim); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 9rem; } td { min-width: 7.5rem; }
td.number, td.short { min-width: 0; white-space: nowrap; } .differences th { min-width: 3.5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.small-bar { width: 9rem; height: .7rem; } td.picture { width: 10rem; }
.state { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .1rem 1rem; margin: 0; }
.state div { display: flex; gap: .6rem; } .state dt { min-width: 3.5rem; }
.state dd { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .88em; }
td.before { color: var(--agreed); } td.after { color: var(--diverged); }
.yes { color: var(--agreed); } .no { color: var(--diverged); font-weight: 600; }
footer { margin-top: 3rem; font-size: .85rem; color: var(--dim); }
@media print { body { background: none; font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .card { break-inside: avoid; border-color: #999; } h2, h3, h4 { break-after: avoid; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


# Width of a bar, in units of its own.
_WIDTH: Final = 1000
# The smallest width of a part, so that every part is visible.
_NARROWEST: Final = 6

Part = ET.Element | str


def as_html(tally: Tally) -> str:
    """Return the report."""
    verdict = facts.verdict(tally)
    page = _tag("html", _head(verdict), _tag("body", _tag("main", *_body(tally, verdict))), lang="en")
    return "<!DOCTYPE html>\n" + ET.tostring(page, encoding="unicode", method="html") + "\n"


def _tag(name: str, /, *parts: Part, of: str = "", **attributes: str) -> ET.Element:
    """Return an element; `of` is its class."""
    element = ET.Element(
        name, {"class": of} if of else {}, **{key: one_line(value, "\n") for key, value in attributes.items()}
    )
    for part in parts:
        if isinstance(part, ET.Element):
            element.append(part)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + one_line(part, "\n")
        else:
            element.text = (element.text or "") + one_line(part, "\n")
    return element


def _head(verdict: str) -> ET.Element:
    return _tag(
        "head",
        _tag("meta", charset="utf-8"),
        _tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _tag("title", f"trapline check: {verdict}"),
        _tag("style", STYLE),
    )


def _body(tally: Tally, verdict: str) -> Iterator[ET.Element]:
    yield _tag(
        "header",
        _tag("h1", "trapline check: is the patched program still the same program?"),
        _tag("p", f"{'✓' if tally.same else '✗'} {verdict}", of=f"verdict {'same' if tally.same else 'different'}"),
        _facts(tally),
    )
    if tally.sites:
        yield from _outcomes(tally)
    if found := facts.troubles(tally):
        yield _tag("h2", "Sites that are not the same", id="trouble")
        yield from (_trouble(trouble, number) for number, trouble in enumerate(found, 1))
    if tally.runs:
        yield _tag("h2", "Whole runs")
        yield _card(_runs(tally))
    if tally.encodings:
        yield _tag("h2", "Decode tables")
        yield _card(_encodings(tally))
    if tally.files:
        yield _tag("h2", "By file")
        yield _card(_files(tally))
    if tally.refusals:
        yield _tag("h2", "Refused, by rule")
        yield _card(_refusals(tally.refusals))
    yield _tag("footer", f"Trapline {installed_version()}")


def _facts(tally: Tally) -> ET.Element:
    words = {name: _spec(value) for name, value in tally.spec.items() if value not in ((), [])}
    if tally.left_out:
        words["left out"] = f"{counted(tally.left_out, 'state')}: {WHY_LEFT_OUT}"
    if rate := facts.rate(tally):
        words["this run"] = rate
    return _list("facts", words.items())


def _spec(value: object) -> str:
    match value:
        case None | "":
            return "any"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_spec, value))
        case {"path": path, **rest}:
            said = (str(name) if one is True else f"{name} {_spec(one)}" for name, one in rest.items() if one)
            return f"{path} ({', '.join(said)})"
    return str(value)


def _list(of: str, words: Iterable[tuple[str, str]]) -> ET.Element:
    return _tag("dl", *(_tag("div", _tag("dt", name), _tag("dd", value)) for name, value in words), of=of)


def _card(*parts: ET.Element) -> ET.Element:
    return _tag("div", *parts, of="card wide")


def _table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[Part | int]], of: str = "", cells: Sequence[str] = ()
) -> ET.Element:
    """Return a table; a row's first cell is its head, `cells` are the classes of the others."""
    numbers: set[int] = set()
    body = _tag("tbody")
    for row in rows:
        line = ET.SubElement(body, "tr")
        for place, value in enumerate(row):
            if isinstance(value, int):
                numbers.add(place)
                line.append(_tag("td", f"{value:,}", of="number"))
            elif not place:
                line.append(_tag("th", value, scope="row"))
            else:
                line.append(_tag("td", value, of=cells[place] if cells else ""))
    marked = [
        _tag("th", head, of="number" if place in numbers else "", scope="col") for place, head in enumerate(heads)
    ]
    return _tag("table", _tag("caption", caption), _tag("thead", _tag("tr", *marked)), body, of=of)


# -- outcomes


def _outcomes(tally: Tally) -> Iterator[ET.Element]:
    yield _tag("h2", f"Outcomes of {counted(tally.sites, 'site')}")
    legend = _tag("ul", of="legend")
    for outcome, count in _in_order(tally.outcomes):
        legend.append(_tag("li", _key(outcome), _tag("b", f"{count:,}"), f" {outcome.value}: ", _meaning(outcome)))
    yield _card(_bar(tally.outcomes, "bar"), legend)


def _in_order(outcomes: Counter[Outcome]) -> list[tuple[Outcome, int]]:
    return [(outcome, outcomes[outcome]) for outcome in Outcome if outcomes[outcome]]


def _meaning(outcome: Outcome) -> ET.Element:
    return _tag("span", facts.MEANING[outcome], of="dim")


def _key(outcome: Outcome) -> ET.Element:
    """Return the coloured mark of an outcome."""
    return _svg("0 0 10 10", _tag("rect", of=outcome.value, width="10", height="10", rx="2"), **{"aria-hidden": "true"})


def _bar(outcomes: Counter[Outcome], of: str) -> ET.Element:
    """Return a picture of the outcomes: a part for each, in proportion to its frequency."""
    told = ", ".join(f"{count:,} {outcome.value}" for outcome, count in _in_order(outcomes))
    return _svg(
        f"0 0 {_WIDTH} 24", _tag("title", told), *_stretches(outcomes), of=of, role="img", **{"aria-label": told}
    )


def _stretches(outcomes: Counter[Outcome]) -> Iterator[ET.Element]:
    present = _in_order(outcomes)
    room = _WIDTH - _NARROWEST * len(present)
    at = 0.0
    for outcome, count in present:
        width = _NARROWEST + room * count / outcomes.total()
        yield _tag("rect", of=outcome.value, x=f"{at:.2f}", width=f"{width:.2f}", height="24")
        at += width


def _svg(box: str, *parts: ET.Element, of: str = "", **attributes: str) -> ET.Element:
    return _tag("svg", *parts, of=of, viewBox=box, preserveAspectRatio="none", **attributes)


def _files(tally: Tally) -> ET.Element:
    outcomes = [outcome for outcome in Outcome if tally.outcomes[outcome]]
    return _table(
        "Sites of each file, by outcome",
        ("file", "provider", "", *(outcome.value for outcome in outcomes)),
        (
            (file, provider, _bar(counts, "small-bar"), *(counts[outcome] for outcome in outcomes))
            for (file, provider), counts in sorted(tally.files.items())
        ),
        cells=("", "short", "picture", *("" for _ in outcomes)),
    )


def _refusals(refusals: Counter[str]) -> ET.Element:
    most = max(refusals.values())

    def picture(count: int) -> ET.Element:
        width = max(_NARROWEST, _WIDTH * count / most)
        rect = _tag("rect", of=Outcome.REFUSED.value, width=f"{width:.2f}", height="24")
        return _svg(f"0 0 {_WIDTH} 24", rect, of="small-bar", **{"aria-hidden": "true"})

    return _table(
        "Sites where no probe is allowed, by the rule that refuses them",
        ("rule", "", "sites"),
        ((rule, picture(count), count) for rule, count in refusals.most_common()),
        cells=("", "picture", ""),
    )


# -- differences


def _trouble(trouble: Trouble, number: int) -> ET.Element:
    result = trouble.result
    title = _tag("a", f"{result.outcome.value}: {trouble.title}", href=f"#site-{number}")
    article = _tag(
        "article",
        _tag("h3", title),
        _tag("p", f"{trouble.provider} in {trouble.file}", of="dim"),
        _tag("pre", f"{trouble.site.address:#x}:  {trouble.code.hex(' ')}   {trouble.instruction}"),
        of=f"card trouble of-{result.outcome.value}",
        id=f"site-{number}",
    )
    if result.why:
        article.append(_tag("p", result.why))
    for divergence in result.divergences:
        article.extend(_divergence(divergence))
    return article


def _divergence(divergence: Divergence) -> Iterator[ET.Element]:
    kind = f" in the smallest state that shows it (from: {divergence.state.kind})"
    yield _tag("h4", divergence.way, _tag("span", kind, of="kind"))
    yield _list("state", facts.state_words(divergence) or [("all registers", "0")])
    rows = [(difference.what, difference.original, difference.patched) for difference in divergence.differences]
    table = _table(
        "What it leaves", ("", "original", "patched"), rows, "differences", cells=("", "mono before", "mono after")
    )
    yield _tag("div", table, of="wide")


def _same(same: bool, text: str = "") -> ET.Element:
    shown = text or ("same" if same else "not the same")
    return _tag("span", f"✓ {shown}" if same else f"✗ {shown}", of="yes" if same else "no")


def _runs(tally: Tally) -> ET.Element:
    def told(differences: tuple[str, ...], culprit: str) -> ET.Element:
        lines = [*differences, *([f"first: {culprit}"] if culprit else [])]
        return _tag("div", *(_tag("div", line) for line in lines))

    return _table(
        "Programs and boots, run plain and with all their sites patched",
        ("run", "", "instructions", "firings", "differences"),
        (
            (
                run.name,
                _same(run.passed, facts.run_verdict(run)),
                run.instructions,
                run.fired,
                told(run.differences, run.culprit),
            )
            for run in tally.runs
        ),
        cells=("", "short", "", "", ""),
    )


def _encodings(tally: Tally) -> ET.Element:
    def told(one: facts.EncodingsSummary) -> ET.Element:
        lines = [*(f"never reached: {row}" for row in one.unreached), *one.disagreements]
        classes = ", ".join(f"{count:,} {name}" for name, count in one.classes)
        return _tag("div", *(_tag("div", line) for line in lines), _tag("div", classes, of="dim"))

    return _table(
        "Encodings, held against an independent decoder",
        ("table", "", "encodings", "found"),
        ((one.title, _same(one.same), one.encodings, told(one)) for one in facts.encodings(tally)),
        cells=("", "short", "", ""),
    )
