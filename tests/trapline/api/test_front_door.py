"""`import trapline`: what a script, a test suite or a notebook gets."""

import doctest
import inspect
import pydoc
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import trapline
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from trapline.support import process

FUNCTIONS = ("bench", "check", "displace", "execute", "sites", "step", "trace")
every_isa = pytest.mark.parametrize("isa", ISAS)


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_it_imports_nothing_else():
    code = "import sys, typing; before = {*sys.modules}; import trapline; print(*{*sys.modules} - before)"
    assert set(run_python(code).split()) <= {"trapline", "__future__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_documented_typed_and_short(name):
    function = getattr(trapline, name)
    signature = str(inspect.signature(function))
    assert len(signature) < 500
    assert len(function.__doc__.splitlines()) > 4
    examples = doctest.DocTestFinder().find(function, name, globs={"trapline": trapline})[0]
    assert any(f"trapline.{name}(" in example.source for example in examples.examples)
    told = []
    doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not told, "".join(told)
    hints = typing.get_type_hints(function, vars(sys.modules[function.__module__]))
    assert set(hints) == {*inspect.signature(function).parameters, "return"}


def test_help_lists_all_of_it():
    text = pydoc.render_doc(trapline, renderer=pydoc.plaintext)
    for name in trapline.__all__:
        assert f" {name}(" in text or f"class {name}" in text
    assert set(trapline.__all__) <= set(dir(trapline))
    with pytest.raises(AttributeError, match="no attribute 'trac'"):
        _ = trapline.trac


@every_isa
def test_a_trace_is_data(isa):
    trace = trapline.trace(
        'fbt::sys_read:entry /execname == "cat"/ { @[execname] = count(); @q["x"] = quantize(arg2); trace(pid); }',
        isa=isa,
        command="cat /etc/motd",
    )
    assert trace.isa == isa
    assert trace.aggregation() == {"cat": len(trace.records)}
    assert sum(trace.aggregation("@q")["x"].values()) == len(trace.records)
    assert trace.records[0].probe == "fbt:kernel:sys_read:entry"
    assert trace.records[0].values[0] > 1
    assert trace.output.startswith("Welcome to the teaching kernel.")
    assert "<caption" in trace._repr_html_()
    assert trace.status == 0


def test_a_linux_program_is_traced_and_its_output_is_kept(capfd):
    program = images.linux(ISAS["riscv64"], "zoo")
    trace = trapline.trace("pid$target:zoo:fib:entry { @ = count(); }", command=f"{program} recursion")
    assert trace.isa == "riscv64"
    assert trace.aggregation()[()] > 10
    assert trace.output
    assert capfd.readouterr() == ("", "")


def test_the_argument_of_exit_is_the_status():
    assert trapline.trace("BEGIN { trace(1); exit(3); }").status == 3


def test_a_script_takes_arguments_and_options(tmp_path):
    script = tmp_path / "count.d"
    script.write_text('BEGIN { printf("%d %s", $1 + 1, $$2); exit(0); }')
    trace = trapline.trace(script, options={"bufsize": "64k", "quiet": True}, arguments=("41", "x"))
    assert [one.values for one in trace.records] == [("42 x",)] or "42" in str(trace.records)


@every_isa
def test_sites_displaced_code_steps_and_checks_are_data(isa):
    found = trapline.sites("testbins:kernel", function="sys_getpid", isa=isa)
    assert [site.probe for site in found[0].sites] == ["entry", "return"]
    user = trapline.sites("testbins:zoo", function="fib", isa=isa)
    assert user[0].probes == "entry"
    assert "sys_getpid" in found._repr_html_()
    assert "fib" in user._repr_html_()
    nop = trapline.displace(isa, "nop")
    assert nop[0].decision("pid").what in {"emulated", "out of line"}
    assert trapline.execute(isa, "nop", count=1).same
    checked = trapline.check("testbins:zoo", isa=isa, function="fib", run=False, states=2)
    assert checked.same
    assert checked.outcomes["agreed"] == 2
    assert "agreed" in checked._repr_html_()


@every_isa
def test_a_firing_is_recorded(isa):
    found = trapline.step("fbt::sys_getpid:entry", isa=isa, command="getpid 1")
    assert (found.isa, len(found.firings)) == (isa, 1)
    assert found.firings[0].steps
    assert found.data()["isa"] == isa
    shown = found._repr_html_()
    assert shown.startswith('<iframe title="fbt::sys_getpid:entry"')
    assert '"step' not in shown.partition('srcdoc="')[2]  # the page is escaped


def test_a_mistake_is_recorded():
    found = trapline.step("fbt::sys_getpid:entry", command="getpid 1", fault="pc-not-advanced")
    assert found.ending.startswith("the CPU meets this breakpoint again and again")
    with pytest.raises(trapline.TraplineError, match="'pc' is not a fault: there are no-icache-flush, "):
        trapline.step("fbt::sys_getpid:entry", fault="pc")


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "riscv64"])  # the example in its documentation is of it
def test_costs_are_data(isa):
    costs = trapline.bench("uprobe", isa=isa)
    assert {row.mechanism for row in costs.rows} == {"uprobe"}
    assert all(costs.nanoseconds(row) for row in costs.rows)
    assert "single-stepped" in costs._repr_html_()
    program = trapline.bench(isa=isa, program="testbins:zoo recursion", probes=["pid$target:a.out:fib:entry"])
    assert [one.hits for one in program.hits] == [177]
    assert set(program.nanoseconds()) == {model.name for model in program.models}
    assert "fib" in program._repr_html_()


def test_a_check_leaves_the_collector_of_its_caller_alone(monkeypatch):
    relieved = []
    monkeypatch.setattr(process, "relieve_collector", lambda: relieved.append(1))
    assert trapline.check("testbins:tiny", isa="riscv64", every_instruction=True, run=False).same
    assert not relieved


def test_assembly_is_checked_in_this_process():
    code = "import trapline; print(trapline.check(asm='push rbp; mov rbp, rsp', states=2).same)"
    assert run_python(code) == "True\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trapline.trace("BEGIN { foo(); }"), "undefined function name: foo"),
        (lambda: trapline.trace("fbt::mallok:entry"), "did you mean fbt::malloc:entry?"),
        (lambda: trapline.bench("jprobe"), "'jprobe' is not a mechanism: there are fbt"),
        (lambda: trapline.bench(program="nosuch"), "nosuch: no such program"),
        (lambda: trapline.bench(program="'"), "No closing quotation"),
        (lambda: trapline.bench("fbt", models=["zen9"]), "no model 'zen9'"),
        (lambda: trapline.trace("BEGIN", isa="x86"), "--isa x86: choose from"),
        (lambda: trapline.trace("BEGIN", command="/nonexistent"), "no such program"),
        (lambda: trapline.trace("BEGIN { exit(0); }").aggregation("a"), "no aggregation '@a' has data"),
        (lambda: trapline.sites("/nonexistent"), "/nonexistent: no such file"),
        (lambda: trapline.sites("testbins:zoo", provider="foo"), "'foo' is not a provider of sites"),
        (lambda: trapline.sites("testbins:zoo", function="fob"), "did you mean 'fib'?"),
        (lambda: trapline.sites("testbins:zoo", fidelity="foo"), "'foo' is not a fidelity"),
        (lambda: trapline.displace("x86", "nop"), "'x86' is not an ISA (did you mean 'x86_64'?)"),
        (lambda: trapline.displace("riscv64", "adi a0, a0, 1"), "did you mean 'andi'?"),
        (lambda: trapline.execute("riscv64", "nop", {"q0": 1}), "'q0' is not a register of RISC-V"),
        (lambda: trapline.check("/nonexistent"), "/nonexistent: no such file"),
        (lambda: trapline.check("testbins:zoo", provider="foo"), "'--provider': 'foo' is not one of"),
        (lambda: trapline.check("testbins:zoo", isa="foo"), "'--isa': 'foo' is not one of"),
        (trapline.check, "nothing to check"),
        (lambda: trapline.check("testbins:zoo", sample=3), "--sample has no effect without --object or --encodings"),
        (lambda: trapline.check(asm="nop", arguments=["x"]), "PROGRAM has no effect with --asm"),
        (lambda: trapline.check("testbins:zoo", object="/nonexistent.o", glue="fbt"), "/nonexistent.o: no such file"),
        (lambda: trapline.check("testbins:zoo", object=[Path("/nonexistent.o")]), "--object needs --glue"),
        (lambda: trapline.check("testbins:zoo", root="/nonexistent"), "'/nonexistent' does not exist"),
        (lambda: trapline.step("fbt::mallok:entry"), "did you mean fbt::malloc:entry?"),
        (lambda: trapline.step("fbt::malloc:entry", isa="foo"), "'foo' is not an ISA"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_error_with_one_line(call, message):
    with pytest.raises(trapline.TraplineError) as error:
        call()
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
