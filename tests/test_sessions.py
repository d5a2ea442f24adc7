"""Every session of tests/sessions has its expected output; and the runner notices a different one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import run_trapline
from tests.support.sessions import SessionError, check, matches, parse_sessions, read_sessions

FILES = sorted((Path(__file__).parent / "sessions").glob("*.t"))
# Files whose sessions take longer than others, or are about scripts that tests/trapline/test_toolkit.py enables, too.
LONG = {"network", "toolkit"}
CASES = [
    pytest.param(
        session,
        isa,
        id=f"{file.stem}-{session.name}-{isa}",
        marks=[pytest.mark.exhaustive] if file.stem in LONG else [],
    )
    for file in FILES
    for session in read_sessions(file)
    for isa in session.isas
]


@pytest.mark.parametrize(("session", "isa"), CASES)
def test_session_prints_what_it_says(session, isa, tmp_path):
    for name, lines in session.files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    run = run_trapline(session.arguments(isa), cwd=tmp_path)
    wrong = check(session, run.stdout, run.stderr, run.returncode)
    assert not wrong, "\n".join(wrong)


EXAMPLE = """
# A comment, and an empty line.

NAME read_random is seen
ISAS x86_64 riscv64
RUN trapline dtrace -q -s 'my script.d'
FILE my script.d
|BEGIN
|{
|}
EXPECT
|  0 {{ *\\d+}} [read] {{.*}}
|
|| a line that begins with a bar
STDERR
|dtrace: {{\\d}} drops
EXIT 3

NAME short
PROG BEGIN { exit(0); }
"""


def test_a_session_is_read_with_all_its_lines():
    session, short = parse_sessions(EXAMPLE)
    assert (session.name, session.isas, session.exit) == ("read_random is seen", ("x86_64", "riscv64"), 3)
    assert session.files == {"my script.d": ["BEGIN", "{", "}"]}
    assert session.expect == ["  0 {{ *\\d+}} [read] {{.*}}", "", "| a line that begins with a bar"]
    assert session.stderr == ["dtrace: {{\\d}} drops"]
    assert session.arguments("riscv64") == ["dtrace", "--isa", "riscv64", "-q", "-s", "my script.d"]
    assert short.arguments("x86_64") == ["dtrace", "--isa", "x86_64", "-n", "BEGIN { exit(0); }"]
    assert short.stderr is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RUN trapline dtrace\n", "f.t:1: a session begins with NAME"),
        ("NAME a\nEXPECTED\n", "f.t:2: unknown line EXPECTED"),
        ("NAME a\n", "f.t:1: a: no RUN and no PROG"),
        ("NAME a\n|text\n", "f.t:2: a line of text outside EXPECT, STDERR and FILE"),
        ("NAME a\nISAS m68k\n", "f.t:2: no ISA m68k; there are x86_64, aarch64, riscv64, i386"),
        ("NAME a\nRUN rm -rf x\n", "f.t:2: only trapline can be run, not rm"),
        ("NAME a\nEXIT one\n", "f.t:2: EXIT one: not a number"),
    ],
)
def test_a_file_that_is_not_in_the_format_is_refused_by_its_line(text, message):
    with pytest.raises(SessionError) as caught:
        parse_sessions(text, "f.t")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expected", "lines", "same"),
    [
        (["a b"], ["a b"], True),
        (["a b"], ["a b "], False),
        (["a{{ }}"], ["a "], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a.c"], ["abc"], False),
        (["n {{\\d+}}|"], ["n 42|"], True),
        (["n {{\\d+}}|"], ["n x|"], False),
        (["{{a|b}} c"], ["b c"], True),
        (["a", "{{...}}", "c"], ["a", "b", "b", "c"], True),
        (["a", "{{...}}", "c"], ["a", "c"], True),
        (["a", "{{...}}"], ["b"], False),
        ([], [], True),
        ([], [""], False),
    ],
)
def test_lines_match_only_what_is_expected(expected, lines, same):
    assert matches(expected, lines) is same


def test_a_run_that_differs_is_reported_with_the_ends_of_its_lines():
    session = parse_sessions("NAME a\nPROG BEGIN\nEXPECT\n|one \n|two\nSTDERR\n|dtrace: no\n")[0]
    assert check(session, "one \ntwo\n", "dtrace: no\n", 0) == []
    output, errors, status = check(session, "one\ntwo\n", "dtrace: yes\n", 1)
    assert "-one $\n+one$" in output
    assert "-dtrace: no$\n+dtrace: yes$" in errors
    assert status.startswith("exit status 1, expected 0")


def test_output_without_a_final_newline_is_its_line():
    session = parse_sessions("NAME a\nPROG BEGIN\nEXPECT\n|one\n")[0]
    assert check(session, "one", "", 0) == []
    assert check(session, "one\n\n", "", 0) != []
