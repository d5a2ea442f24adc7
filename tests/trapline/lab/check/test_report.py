"""The reports of `trapline check`: whatever the form, everything is in it, and nothing in a name gets out of it."""

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import State
from trapline.lab.check.report import FORMS
from trapline.lab.check.report.text import lines
from trapline.lab.check.results import Results, RunResult, Tally
from trapline.lab.check.site.compare import Difference, Divergence, Outcome, SiteResult
from trapline.support.output_files import OutputError

WRITERS = FORMS.writers

SAME = True
GOLDEN = Path(__file__).with_name("report.txt")
LEA = bytes.fromhex("488d0437c3909090")
RET = bytes.fromhex("c3909090")


def diverged(function="add", way="emulated"):
    state = State("pointers", {"rdi": 0x2A0000001008, "rsi": 0, "rax": 7}, 0x2, 0)
    differences = (Difference("rax", "0x7", "0x0"), Difference("end", "pc 0x1004", "pc 0x1005"))
    site = CheckSite(0x1000, LEA, function, 0x1000, "entry")
    return SiteResult(site, Outcome.DIVERGED, "emulated: pop", 40, 0, (Divergence(way, state, differences),))


def everything(**changes):
    """A tally with one of everything."""
    fields = {
        "spec": {"program": "./prog", "isa": "x86_64", "states": 40, "function": None, "every_instruction": True},
        "outcomes": Counter({Outcome.AGREED: 1200, Outcome.REFUSED: 30, Outcome.DIVERGED: 1, Outcome.CRASHED: 1,
                             Outcome.UNREPEATABLE: 2}),
        "files": {
            ("./prog", "pid"): Counter({Outcome.AGREED: 1000, Outcome.DIVERGED: 1, Outcome.REFUSED: 30}),
            ("./prog", "uprobe"): Counter({Outcome.AGREED: 200, Outcome.UNREPEATABLE: 2, Outcome.CRASHED: 1}),
        },
        "states": 48_080,
        "left_out": 5,
        "refusals": Counter({f"rule {number}": 30 - number for number in range(14)}),
        "trouble": [
            ("./prog", "pid", diverged()),
            ("./prog", "uprobe", SiteResult(CheckSite(0x2000, RET), Outcome.CRASHED, "stepped: c3")),
        ],
        "runs": [
            RunResult("kernel boot", SAME, 1_000_000, 500),
            RunResult("prog", not SAME, 10, 2, ("exit status: 0 became 1",), "add+0x0, then rax"),
        ],
        "encodings": [
            {"isa": "x86_64", "provider": "pid", "encodings": 100_000, "doing": {"emulated": 10, "out of line": 90},
             "disagreements": [{"encoding": "c3", "ours": "ret", "theirs": "retq"}], "unreached": ["row 7"]},
            {"isa": "aarch64", "provider": "fbt", "encodings": 16, "disagreements": [], "unreached": []},
        ],
        "seconds": 2.0,
        "fresh": 48_080,
    }  # fmt: skip
    return Tally(**(fields | changes))


def agreed():
    place = {("./prog", "pid"): Counter({Outcome.AGREED: 3})}
    return Tally({"isa": "x86_64"}, Counter({Outcome.AGREED: 3}), place, states=120)


class Page(HTMLParser):
    """A page, read strictly: every element is closed, in order; its text and its tags are kept."""

    VOID = frozenset({"meta"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], Counter(), [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


# -- text


def test_text_is_as_it_should_be():
    assert WRITERS[".txt"](everything()) == GOLDEN.read_text()


def test_text_begins_with_the_verdict():
    assert WRITERS[".txt"](agreed()).splitlines()[0] == "same: 3 sites (120 site-states)"
    assert WRITERS[".txt"](everything()).startswith("NOT the same: 1 site diverged, 1 site crashed the emulator, 1 run")
    assert WRITERS[".txt"](Tally({})) == "nothing was checked\n"


def test_a_name_cannot_break_a_line_of_text_or_steer_a_terminal():
    evil = diverged("a\n\x1b[2Jsame: 9 sites\x9b")
    told = [line.plain for line in lines(everything(trouble=[("p\r\n", "pid", evil)]))]
    assert not any(set(line) & set("\n\r\x1b\x9b") for line in told)
    assert not any(line.startswith("same") for line in told)


def test_an_instruction_of_a_file_that_is_gone_is_shown_by_its_bytes():
    told = WRITERS[".txt"](everything(spec={}, trouble=[("/nowhere/prog", "pid", diverged())]))
    assert f"(no instruction)  [{LEA.hex()}]" in told


# -- JSON


def test_json_holds_everything():
    found = json.loads(WRITERS[".json"](everything()))
    tally = everything()
    assert found["same"] is False
    assert found["checked"] == tally.spec
    assert found["outcomes"] == {
        "agreed": 1200,
        "diverged": 1,
        "refused": 30,
        "unrepeatable": 2,
        "crashed": 1,
        "failed": 0,
    }
    assert found["sites"] == sum(found["outcomes"].values())
    assert {one["rule"]: one["sites"] for one in found["refusals"]} == tally.refusals
    assert found["trouble"][0]["divergences"][0] == {
        "way": "emulated",
        "state": {"kind": "pointers", "registers": {"rdi": "0x2a0000001008", "rax": "0x7"}, "flags": "0x2",
                  "vectors": 0},
        "differences": [{"what": "rax", "original": "0x7", "patched": "0x0"},
                        {"what": "end", "original": "pc 0x1004", "patched": "pc 0x1005"}],
    }  # fmt: skip
    assert found["trouble"][0]["instruction"] == "lea rax, [rdi + rsi]"
    assert found["trouble"][0]["bytes"] == "488d0437"
    assert [run["same"] for run in found["runs"]] == [True, False]
    assert found["encodings"] == tally.encodings
    assert json.loads(WRITERS[".json"](agreed()))["same"] is True


def test_json_is_the_same_from_a_results_file(tmp_path):
    results = Results(tmp_path / "results", {"isa": "x86_64"})
    fine = SiteResult(CheckSite(0x3000, RET, "f", 0x3000, "return"), Outcome.AGREED, "emulated", 40)
    refused = SiteResult(CheckSite(0x3001, RET), Outcome.REFUSED, "rule")
    results.add("one", {}, [("./prog", "pid", diverged()), ("./prog", "pid", fine), ("./prog", "uprobe", refused)])
    found = json.loads(WRITERS[".json"](results.tally()))
    outcomes = {(one["file"], one["provider"]): one["outcomes"] for one in found["files"]}
    assert outcomes == {("./prog", "pid"): {"agreed": 1, "diverged": 1}, ("./prog", "uprobe"): {"refused": 1}}
    assert found["outcomes"]["agreed"] == found["outcomes"]["diverged"] == found["outcomes"]["refused"] == 1
    assert found["trouble"] == json.loads(WRITERS[".json"](everything()))["trouble"][:1]


# -- JUnit


def counts(element):
    return tuple(int(element.get(name)) for name in ("tests", "failures", "errors", "skipped"))


def test_junit_has_a_suite_for_each_file_and_provider_with_its_counts():
    root = ET.fromstring(WRITERS[".xml"](everything()))  # noqa: S314
    assert root.tag == "testsuites"
    assert {suite.get("name"): counts(suite) for suite in root} == {
        "./prog (pid)": (3, 1, 0, 1),
        "./prog (uprobe)": (3, 0, 1, 1),
        "runs": (2, 1, 0, 0),
        "encodings": (2, 1, 0, 0),
    }
    assert counts(root) == (10, 3, 1, 2)
    for suite in root:
        assert counts(suite)[1:] == tuple(len(suite.findall(f"*/{tag}")) for tag in ("failure", "error", "skipped"))


def test_junit_says_of_a_failure_what_the_text_says():
    root = ET.fromstring(WRITERS[".xml"](everything()))  # noqa: S314
    failure = root.find("testsuite/testcase/failure")
    assert failure.get("message") == "diverged: lea rax, [rdi + rsi] (emulated: pop)"
    assert failure.text in WRITERS[".txt"](everything())


def test_junit_without_trouble_has_no_failures():
    assert counts(ET.fromstring(WRITERS[".xml"](agreed()))) == (1, 0, 0, 0)  # noqa: S314


# -- HTML


def test_html_holds_every_divergence_and_loads_nothing():
    page = Page(WRITERS[".html"](everything()))
    for words in ("lea rax, [rdi + rsi]", "48 8d 04 37", "0x2a0000001008", "pc 0x1005",
                  "add+0x0, then rax", "exit status: 0 became 1", "rule 13", "never reached: row 7", "1,200",
                  "24,040 per second"):  # fmt: skip
        assert words in page.text, words
    assert page.tags["article"] == 2
    assert page.tags["script"] == page.tags["link"] == page.tags["img"] == 0
    assert not [value for _, name, value in page.attributes if name in {"src", "style"} or name.startswith("on")]
    assert all(value.startswith("#") for _, name, value in page.attributes if name == "href")


def test_html_can_be_read_without_seeing_it():
    page = Page(WRITERS[".html"](everything()))
    assert ("html", "lang", "en") in page.attributes
    assert page.tags["table"] == page.tags["caption"] > 3
    pictures = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert pictures[0] == "1,200 agreed, 1 diverged, 30 refused, 2 unrepeatable, 1 crashed"
    hidden = sum((tag, name) == ("svg", "aria-hidden") for tag, name, _ in page.attributes)
    assert len(pictures) + hidden == page.tags["svg"]


def test_stretches_of_the_picture_fill_it_and_the_rarest_is_seen():
    page = WRITERS[".html"](everything())
    picture = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314
    widths = [float(rect.get("width")) for rect in picture.iter("rect")]
    assert sum(widths) == pytest.approx(1000, abs=0.1)
    assert min(widths) > 5


def test_what_was_checked_is_reported_in_words():
    program = {"path": "./prog", "isa": "i386", "provider": "pid", "function": None, "every instruction": True}
    page = Page(WRITERS[".html"](everything(spec={"programs": [program], "encodings": [], "runs": ["./prog (pid)"]})))
    assert "./prog (isa i386, provider pid, every instruction)" in page.text
    assert "encodingsnone" not in page.text
    assert "runs./prog (pid)" in page.text


@given(st.text(min_size=1))
def test_whatever_a_file_or_function_is_called_it_stays_text(name):
    hostile = f"<script>&'\"]]>{name}"
    tally = everything(
        spec={"program": hostile, "isa": "x86_64"},
        files={(hostile, "pid"): Counter({Outcome.DIVERGED: 1})},
        trouble=[(hostile, "pid", diverged(hostile, hostile))],
        runs=[RunResult(hostile, not SAME, 1, 1, (hostile,), hostile)],
        refusals=Counter({hostile: 1}),
    )
    page = Page(WRITERS[".html"](tally))
    assert page.tags["script"] == 0
    assert page.text.count("<script>&'\"]]>") >= 7
    suites = ET.fromstring(WRITERS[".xml"](tally))  # noqa: S314
    assert counts(suites) == (4, 3, 0, 0)
    assert json.loads(WRITERS[".json"](tally))["trouble"][0]["function"] == hostile


# -- files


def test_the_suffix_decides(tmp_path):
    for suffix, make in WRITERS.items():
        path = tmp_path / f"report{suffix}"
        FORMS.write(agreed(), path)
        assert path.read_text() == make(agreed())
    assert FORMS.writer("REPORT.HTML") is WRITERS[".html"]


def test_another_suffix_is_refused_with_those_there_are():
    with pytest.raises(OutputError, match=r"^report\.pdf: .* \.txt, \.json, \.xml, \.html$"):
        FORMS.writer("report.pdf")
    with pytest.raises(OutputError, match="no such file or directory"):
        FORMS.write(agreed(), "/nowhere/report.txt")
