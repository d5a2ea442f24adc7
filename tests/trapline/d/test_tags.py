"""Every refusal has its tag and one clear message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.trapline.d.reference.scene import run_scene
from tests.trapline.d.support import compile_text, tag_of
from trapline.d.check.scopes import Globals
from trapline.d.compiler import Form
from trapline.d.errors import CompileError
from trapline.d.types.types import INT
from trapline.framework.base.dif import USER_VARIABLE_BASE, USER_VARIABLE_MAX
from trapline.framework.base.program import Scope

HOME = Path(__file__).parent
TABLE = (HOME / "reference" / "tags.d").read_text("utf-8")
ROWS = re.findall(r"^(D_\w+) (?:\[(.*?)\] )?(.*)$", TABLE, re.MULTILINE)
REASONS = dict(re.findall(r"^(D_\w+): (.+)$", TABLE, re.MULTILINE))
RAISED = re.compile(r"\bD_[A-Z]+(?:_[A-Z]+)*\b")


@pytest.mark.parametrize(
    ("tag", "words", "program"), ROWS, ids=[f"{tag}-{number}" for number, (tag, _, _) in enumerate(ROWS)]
)
def test_a_program_is_refused_with_its_tag_in_one_message(tag, words, program):
    text = program.replace("\\n", "\n")
    stdout, stderr, status = run_scene(["-x", "errtags", "-n", text, *words.split()])
    assert (stdout, status) == ("", 1)
    head = f"dtrace: invalid probe specifier {text}: [{tag}] "
    assert stderr.startswith(head), stderr
    assert stderr.count("\n") == head.count("\n") + 1 + 3 * (tag == "D_PRINTF_ARG_TYPE")


@pytest.mark.parametrize(("tag", "program"), sorted({(tag, program) for tag, words, program in ROWS if not words}))
def test_in_a_script_the_message_has_the_line(tag, program, tmp_path):
    """On the command line a description may stand alone, and is looked for; a script gives it braces."""
    script = tmp_path / "a.d"
    script.write_text("\n\n" + program.replace("\\n", "\n"))
    _stdout, stderr, status = run_scene(["-x", "errtags", "-s", str(script)])
    assert status == 1
    assert re.match(rf"dtrace: failed to compile script {script}: \[{tag}\] line \d+: ", stderr), stderr


def test_every_tag_that_is_raised_is_in_the_table():
    """Also the other way round: what the table says is raised here, is."""
    known = {tag for tag, _words, _program in ROWS} | set(REASONS)
    sources = "".join(path.read_text("utf-8") for path in (HOME.parents[2] / "trapline").rglob("*.py"))
    sources += "".join(path.read_text("utf-8") for path in (HOME.parents[2] / "providers" / "fasttrap").glob("*.py"))
    named = {
        tag for tag in RAISED.findall(sources) if not any(other != tag and other.startswith(tag) for other in known)
    }
    assert named <= known
    assert {tag for tag, reason in REASONS.items() if "tests/" not in reason}.isdisjoint(named)


def test_there_are_no_more_variables_than_numbers_for_them():
    names = Globals()
    for number in range(USER_VARIABLE_MAX - USER_VARIABLE_BASE + 1):
        names.declare(Scope.GLOBAL, f"x{number}", INT)
    with pytest.raises(CompileError, match="too many variables") as caught:
        names.declare(Scope.GLOBAL, "x", INT)
    assert caught.value.tag == "D_ID_OFLOW"


def test_the_command_line_has_regions_and_no_lines():
    with pytest.raises(CompileError, match="in predicate: failed to resolve nosuch"):
        compile_text("BEGIN /nosuch/ { }", form=Form.NAME)


def test_a_name_misspelt_is_answered_with_the_right_one():
    with pytest.raises(CompileError, match=r"did you mean execname\?"):
        compile_text("BEGIN { trace(execnam) }")


def test_no_match_is_an_error_unless_it_is_allowed():
    assert tag_of("nosuch { }", probes=lambda _wanted: ()) == "D_PDESC_ZERO"
    assert tag_of("nosuch { }", probes=lambda _wanted: (), options=["zdefs"]) == ""


def test_an_argument_that_is_never_used_is_an_error_unless_it_is_allowed():
    how = {"arguments": ("d", "1", "2")}
    assert tag_of("BEGIN { trace($1) }", **how) == "D_MACRO_UNUSED"
    assert tag_of("BEGIN { trace($1 + $2) }", **how) == ""
    assert tag_of("BEGIN { trace($1) }", options=["argref"], **how) == ""


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (Form.NAME, "entry", ("", "", "", "entry")),
        (Form.NAME, "f:entry", ("", "", "f", "entry")),
        (Form.NAME, "m:f:entry", ("", "m", "f", "entry")),
        (Form.NAME, "fbt::f:", ("fbt", "", "f", "")),
        (Form.FUNCTION, "f", ("", "", "f", "")),
        (Form.FUNCTION, "fbt:m:f", ("fbt", "m", "f", "")),
        (Form.MODULE, "fbt:m", ("fbt", "m", "", "")),
        (Form.PROVIDER, "fbt", ("fbt", "", "", "")),
    ],
)
def test_fields_of_a_description_count_from_the_right(form, text, expected):
    probe = compile_text(text, form=form).ecbs[0].probe
    assert (probe.provider, probe.module, probe.function, probe.name) == expected
