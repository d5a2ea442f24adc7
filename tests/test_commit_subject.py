"""The hook for commit messages refuses a subject that is too long, or that names no area."""

import subprocess

import pytest

from tests.support.command import ROOT

HOOK = ROOT / ".ci" / "commit-subject"


def said(message, tmp_path):
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    done = subprocess.run([HOOK, file], capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0)
    assert not done.stdout
    return done.stderr


@pytest.mark.parametrize(
    "message",
    [
        "providers/fbt: refuse a jump into a prologue\n\nThe reason.\n",
        "emu, tests: one name for a slot\n# comment of git\n",
        "d: " + "x" * 69,
        "\n# first a comment\nd: parse\n",
        "Merge branch 'main'\n",
        'Revert "d: a subject that is as long as the one that it takes back, and some characters more"\n',
    ],
)
def test_a_good_subject_passes(message, tmp_path):
    assert said(message, tmp_path) == ""


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("d: " + "x" * 70, "has 73 characters, and 72 at most"),
        ("Refuse a jump into a prologue\n", "is not 'area: what it does'"),
        ("Refuse this: a jump\n", "is not 'area: what it does'"),
        ("d:parse\n", "is not 'area: what it does'"),
        ("# nothing\n", "is not 'area: what it does'"),
        ("d: parse\nthe reason\n", "the line below the subject is not blank"),
    ],
)
def test_a_bad_subject_is_refused_with_the_reason(message, why, tmp_path):
    assert why in said(message, tmp_path)
