"""The stability of programs (-v)."""

import pytest

from providers.base import Attribute, DependencyClass, Stability
from tests.support.command import run_trapline
from tests.trapline.d.support import compile_text
from trapline.framework.base.device import ProbeInfo
from trapline.framework.base.program import ProbeDescription


class _Attributes:
    args = Attribute(Stability.EVOLVING, Stability.PRIVATE, DependencyClass.ISA)


PROBES = (ProbeInfo(1, ProbeDescription("p", "m", "f", "entry"), _Attributes()),)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("trace(1)", "STABLE STABLE COMMON"),
        ("trace(execname); x = timestamp", "STABLE STABLE COMMON"),
        ("trace(curthread)", "STABLE PRIVATE COMMON"),
        ("trace(arg0)", "EVOLVING PRIVATE ISA"),
        ("trace(mutex_owned(curthread))", "EVOLVING PRIVATE COMMON"),
        ("@[arg1] = count()", "EVOLVING PRIVATE ISA"),
        ("if (arg0) { trace(1) }", "EVOLVING PRIVATE ISA"),
    ],
)
def test_a_program_is_as_stable_as_the_least_stable_of_its_names(body, expected):
    found = compile_text(f"f:entry {{ {body} }}", probes=lambda _wanted: PROBES).stability
    assert f"{found.name.name} {found.data.name} {found.klass.name}" == expected


def test_the_predicate_counts_too():
    program = compile_text("f:entry /arg0/ { trace(1) }", probes=lambda _wanted: PROBES)
    assert program.stability.klass is DependencyClass.ISA


def test_v_reports_the_least_of_descriptions_and_statements():
    run = run_trapline(["dtrace", "-v", "-n", "fbt::sys_read:entry { trace(curthread); exit(0) }"])
    assert run.returncode == 0
    head = run.stdout.split("CPU", 1)[0]
    assert head.startswith("\nStability attributes for description fbt::sys_read:entry :\n")
    assert head.count("Identifier Names: Private") == head.count("Identifier Names: Stable") == 1


def test_with_e_each_description_follows():
    run = run_trapline(["dtrace", "-e", "-v", "-n", "fbt::sys_read: { trace(1) }"])
    assert "\nfbt::sys_read:\n\n\tProbe Description Attributes\n" in run.stdout
    assert "args[0]: struct thread *" in run.stdout


def test_a_pragma_gives_a_name_its_stability():
    pragma = "inline int X = 1;\n#pragma D attributes Evolving/Private/ISA X\n"
    found = compile_text(f"{pragma}BEGIN {{ trace(X) }}").stability
    assert found == Attribute(Stability.EVOLVING, Stability.PRIVATE, DependencyClass.ISA)


def test_option_amin_refuses_what_is_less_stable():
    run = run_trapline(
        ["dtrace", "-x", "errtags", "-x", "amin=Stable/Stable/Common", "-n", "dtrace:::BEGIN { trace(curthread) }"]
    )
    assert run.returncode == 1
    assert "[D_ATTR_MIN]" in run.stderr
    assert "Stable/Private/Common" in run.stderr
    run = run_trapline(
        ["dtrace", "-x", "amin=Stable/Private/Common", "-n", "dtrace:::BEGIN { trace(curthread); exit(0) }"]
    )
    assert run.returncode == 0
