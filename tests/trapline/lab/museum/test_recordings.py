"""Each exhibit plays under both rules, and the old one is marked where it goes wrong."""

from itertools import pairwise

import pytest

from tests.support.command import run_trapline
from tests.support.some import some
from trapline.lab.museum.exhibit import Playable
from trapline.lab.museum.gallery import exhibits
from trapline.lab.museum.recordings import play

EXHIBITS = {name: exhibit for name, exhibit in exhibits().items() if isinstance(exhibit.check, Playable)}
RACES = set(exhibits()) - set(EXHIBITS)
# To record, the emulator translates the code anew, so its bug is not seen.
UNSEEN = "stale-instructions"


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_old_rule_is_marked_where_it_goes_wrong(name):
    old, right = play(EXHIBITS[name])
    marked = [step for step in old.firings[0].steps if step.fault]
    assert len(marked) == (name != UNSEEN)
    assert not any(step.fault for step in right.firings[0].steps)
    assert any("does not show the bug" in note for note in old.notes) is (name == UNSEEN)
    assert EXHIBITS[name].now in " ".join(right.notes)


@pytest.mark.parametrize("name", EXHIBITS)
def test_each_sentence_is_about_its_own_instruction(name):
    for recording in some(play(EXHIBITS[name])):
        steps = recording.firings[0].steps
        for step, following in pairwise(some(steps)):
            inside = step.where.startswith("museum`exhibit")
            assert step.out_of_line is not inside or not step.code
            assert step.sentence.startswith("Out of line") <= step.out_of_line
            if "will continue at" in step.sentence or "oes to" in step.sentence:
                assert following.where == step.sentence.rstrip(".").rsplit(" ", 1)[1]
            if step.sentence.startswith("A second breakpoint"):
                assert not inside
        assert "ends here" in steps[-1].sentence
        if not steps[-1].where.startswith("museum`"):
            assert not steps[-1].text, "what is there is no instruction of the exhibit"


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_two_rules_end_differently(name):
    old, right = (recording.notes[1] for recording in play(EXHIBITS[name]))
    assert old.startswith("How it ended: ")
    assert old != right


def test_the_listing_has_the_probe_in_place():
    old, right = play(EXHIBITS["patched-prologue"])
    for recording in (old, right):
        listing = recording.firings[0].listing
        assert listing["before"] != listing["enabled"]
        assert "int3" in listing["enabled"][0]


def test_the_command_writes_a_page(tmp_path):
    file = tmp_path / "exhibit.html"
    run = run_trapline(["check", "--museum", "patched-prologue", "--html", str(file)])
    assert run.returncode == 0
    text = file.read_text("utf-8")
    assert "Here the old rule goes wrong" in text
    assert '"good":false' in text
    assert '"good":true' in text


def test_a_race_plays_with_a_lane_for_each_cpu(tmp_path):
    file = tmp_path / "race.html"
    assert "sleeping-thread" in RACES
    assert run_trapline(["check", "--museum", "sleeping-thread", "--html", str(file)]).returncode == 0
    text = file.read_text("utf-8")
    assert '<th scope="col">patcher</th><th scope="col">CPU 1</th>' in text
    assert "torn" in text


@pytest.mark.parametrize("arguments", [["--html", "x.html"], ["--museum", "nosuch", "--html", "x.html"]])
def test_wrong_options_are_told(arguments, tmp_path):
    run = run_trapline(["check", *arguments], cwd=tmp_path)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
