"""Each bug of the museum is there under the old rule, and not under the package's own."""

import ast
import re
from pathlib import Path

import pytest

from emu.isa import ISAS
from emu.isa.disassembly import disassemble
from tests.support.some import some
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum import gallery, in_c
from trapline.lab.museum.exhibit import Exhibit, Showing
from trapline.lab.museum.gallery import MuseumError

EXHIBITS = gallery.exhibits()
IN_C = [name for name, exhibit in EXHIBITS.items() if exhibit.glue]
PAGE = Path(__file__).parents[4] / "docs" / "museum.md"


def test_there_are_enough_on_every_isa_and_for_every_provider():
    assert len(EXHIBITS) >= 10
    assert {exhibit.isa_name for exhibit in EXHIBITS.values()} == set(ISAS)
    assert {exhibit.provider for exhibit in EXHIBITS.values()} >= {"fbt", "pid", "uprobe", "sdt", "kprobe", "ftrace"}


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_old_rule_fails_and_the_right_one_does_not(name):
    old, right = EXHIBITS[name].run()
    assert not old.agrees, old.lines
    assert right.agrees, right.lines


def test_bugs_of_c_are_rebuilt_on_every_isa():
    assert {EXHIBITS[name].isa_name for name in IN_C} == set(ISAS)


@pytest.mark.parametrize("name", IN_C)
def test_the_bug_in_c_is_found_with_its_line_and_the_corrected_c_is_right(name):
    old, right = (in_c.verdict(EXHIBITS[name], wrong=wrong) for wrong in (True, False))
    assert not old.agrees
    source = Path(in_c.source(EXHIBITS[name]))
    lines = (PAGE.parents[1] / source).read_text().splitlines()
    numbers = [int(one) for line in old.lines for one in re.findall(rf"\[{source.name}:(\d+) ", line)]
    assert numbers
    assert all(lines[number - 1].strip() for number in numbers)
    assert right.agrees, right.lines


@pytest.mark.parametrize("name", EXHIBITS)
def test_its_label_says_what_happened_to_whom_and_where_to_read_of_it(name):
    exhibit = EXHIBITS[name]
    assert exhibit.title.endswith(".")
    assert exhibit.description
    assert exhibit.system
    assert any("https://" in one or ".c" in one for one in exhibit.references)


@pytest.mark.parametrize("name", EXHIBITS)
def test_its_code_is_what_the_comments_beside_it_say(name):
    """Each piece is one instruction, with capstone's assembly beside it; what follows a semicolon is a note."""
    exhibit = EXHIBITS[name]
    _, _, listing = Path(exhibit.path).read_text().partition("code=bytes.fromhex(")
    lines = listing.partition("),\n    old=")[0].strip().splitlines()
    written = [line.strip().replace('"', "").split("  # ") for line in lines]
    code = exhibit.code
    found = [(code[at : at + size].hex(), text) for at, size, text in disassemble(exhibit.isa, code, 0)]
    assert found == [(digits, comment.partition(";")[0]) for digits, comment in written]
    assert sum(len(digits) for digits, _ in written) == 2 * len(exhibit.code)


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_page_tells_of_it_with_all_its_references(name):
    page = PAGE.read_text()
    assert f"**{name}.**" in page
    for reference in EXHIBITS[name].references:
        assert not reference.startswith("https://") or f"<{reference.split()[0]}>" in page


def test_an_old_rule_is_wrong_in_one_decision_only():
    for exhibit in some(EXHIBITS.values()):
        changed = [field for field in Rules.__slots__ if getattr(exhibit.old, field) != getattr(Rules(), field)]
        assert len(changed) == 1, exhibit.name


def test_an_exhibit_is_small():
    for exhibit in some(EXHIBITS.values()):
        text = Path(exhibit.path).read_text()
        assert len(text.splitlines()) <= 75, exhibit.name
        assert ast.get_docstring(ast.parse(text))


# -- what the command prints


def test_showing_one_prints_the_description_the_code_and_both_verdicts():
    lines = []
    assert gallery.show("move-as-jump", lines.append) == 0
    text = "\n".join(lines)
    assert "  +0x00  3285                c.mv a0, a2" in lines
    assert "https://git.kernel.org/linus/b2d473a6019e" in lines
    assert "DIVERGES" in text
    assert text.index("DIVERGES") < text.index("right rule") < text.index("agreed in 64 states")


def test_the_list_names_all_of_them():
    lines = []
    assert gallery.show("list", lines.append) == 0
    assert [line.split()[0] for line in lines] == list(EXHIBITS)


@pytest.mark.parametrize("field", ["old", "right"])
def test_an_exhibit_that_shows_nothing_ends_in_failure(monkeypatch, field):
    agrees, diverges = Showing(agrees=True, lines=()), Showing(agrees=False, lines=())
    verdicts = (agrees, agrees) if field == "old" else (diverges, diverges)
    monkeypatch.setattr(Exhibit, "run", lambda _self: verdicts)
    lines = []
    assert gallery.show("loop-count", lines.append) == 1
    assert ("shows nothing" if field == "old" else "fails as well") in lines[-1]


def test_a_misspelt_name_gets_a_proposal():
    with pytest.raises(MuseumError, match="no exhibit 'loop-cuont' \\(did you mean 'loop-count'\\?\\)"):
        gallery.show("loop-cuont", print)
    with pytest.raises(MuseumError, match="--museum list names them"):
        gallery.show("qqq", print)
