"""Checks from end to end: workers, crashes, going on, the command."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emu.isa import ISAS
from emu.native import available
from tests.support.some import some
from trapline.cli import main
from trapline.lab.check.cpu.rules_under_test import RulesError, load_rules
from trapline.lab.check.cpu.states import BY_MACHINE_CODE, BY_PYTHON
from trapline.lab.check.report import facts
from trapline.lab.check.results import Results, ResultsError, Tally
from trapline.lab.check.runner.check import EncodingsSpec, Spec, check, describe
from trapline.lab.check.runner.pool import Crew, local
from trapline.lab.check.runner.unit import Unit, units, work
from trapline.lab.check.site.compare import Outcome
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import find_file

RULES = "tests.trapline.lab.check.rules_under_test"


def subject(isa: str = "riscv64", **options: Any) -> Subject:
    """Return a program of eleven instructions."""
    return Subject(find_file("testbins:tiny", ISAS[isa]), isa, "pid", every_instruction=True, **options)


def run(*words: str) -> Any:
    """Run the command."""
    return CliRunner().invoke(main, ["check", *words])


@pytest.fixture(autouse=True)
def _no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


class Inline(Executor):
    """Does work at once, in this process; the units in `deadly` break it."""

    def __init__(self, deadly: frozenset[int] = frozenset()) -> None:
        self._deadly = deadly
        self.done: list[Unit] = []

    def submit(self, function: Any, /, *arguments: Any, **_options: Any) -> Future[Any]:
        """Do it."""
        future: Future[Any] = Future()
        _, unit = arguments or (None, None)  # without a unit it is asked whether a worker can start
        if unit is not None and any(unit.first <= number < unit.last for number in self._deadly):
            future.set_exception(RuntimeError("the worker died"))
        else:
            self.done.append(unit)
            future.set_result(function(*arguments))
        return future


# -- workers


def test_any_executor_will_do() -> None:
    with ThreadPoolExecutor(1) as executor:
        tally = check(Spec((subject(),), states=4), executor=executor)
    assert tally.same
    assert tally.outcomes[Outcome.AGREED] == tally.sites == len(subject().sites(load_rules(f"{RULES}:riscv64")))


def test_workers_of_a_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        tally = check(Spec((subject(),), states=4), executor=client.get_executor(), jobs=2)
    assert tally.same
    assert tally.states > 0


def test_a_worker_that_dies_is_replaced_and_its_site_recorded() -> None:
    tally = check(Spec((subject(),), states=4, rules=f"{RULES}:DEADLY"), jobs=2)
    crashed = [result for _, _, result in tally.trouble if result.outcome is Outcome.CRASHED]
    assert crashed
    assert all(result.site.code[:2] == b"\x82\x80" for result in crashed)
    assert all("died" in result.why for result in crashed)
    assert tally.outcomes[Outcome.AGREED] > len(crashed), "the run went on"
    assert not tally.same


def test_a_unit_that_breaks_its_worker_is_halved_to_one_site() -> None:
    spec = Spec((subject(),), states=2)
    made = []

    def make() -> Executor:
        made.append(Inline(frozenset({5})))
        return made[-1]

    found = list(Crew(make, 1).run(spec, units(spec)))
    results = [result for done in found for _, _, result in done.sites]
    assert [result.outcome for result in results].count(Outcome.CRASHED) == 1
    assert len({result.site.address for result in results}) == len(results) == len(subject().sites(spec.all_rules()))


def test_a_file_that_vanishes_is_no_crash_of_its_sites(tmp_path: Path) -> None:
    program = tmp_path / "tiny"
    program.write_bytes(find_file("testbins:tiny", ISAS["riscv64"]).read_bytes())

    def make() -> Executor:
        """Begin the workers when the file has gone."""
        program.unlink()
        return local(1)()

    gone = Spec((Subject(program, "riscv64", "pid", every_instruction=True),))
    with pytest.raises(FileNotFoundError, match="tiny"):
        check(gone, executor=make)


def test_workers_that_take_no_work_end_the_check() -> None:
    made = []

    def make() -> Executor:
        made.append(ThreadPoolExecutor(1))
        made[-1].shutdown()
        return made[-1]

    spec = Spec((subject(),), states=2)
    with pytest.raises(RuntimeError, match="shutdown"):
        list(Crew(make, 1).run(spec, units(spec)))
    assert len(made) == 2, "a new one was tried"


# -- results


def test_a_check_continues_where_it_stopped(tmp_path: Path) -> None:
    spec = Spec(tuple(subject(isa) for isa in ISAS), states=4)
    path = tmp_path / "kept.sqlite"
    first = Inline()
    results = Results(path, describe(spec))

    class Enough(Exception):  # noqa: N818
        pass

    def stop(_done: object) -> None:
        raise Enough

    with pytest.raises(Enough):
        check(spec, results=results, executor=first, found=stop)
    results.close()
    second = Inline()
    tally = check(spec, results=Results(path, describe(spec)), executor=second)
    whole = check(spec, executor=Inline())
    assert len(first.done) >= 1
    assert tally.outcomes == whole.outcomes
    assert tally.states == whole.states > tally.fresh
    third = Inline()
    assert check(spec, results=Results(path, describe(spec)), executor=third).states == whole.states
    assert not third.done, "nothing is done twice"


def test_results_of_another_check_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    Results(path, describe(Spec((subject(),), states=4))).close()
    with pytest.raises(ResultsError, match="states 4 there, 5 here"):
        Results(path, describe(Spec((subject(),), states=5)))


@pytest.mark.parametrize(("native", "sites"), [(True, BY_MACHINE_CODE), (False, BY_PYTHON)])
def test_a_site_is_tried_in_as_many_states_as_are_worthwhile(*, native: bool, sites: int) -> None:
    if native and not available():
        pytest.skip("needs llvmlite")
    spec = Spec((subject(),), native=native)
    assert spec.states_of("sites") == sites
    assert spec.states_of("guest") == BY_PYTHON
    tally = check(spec, executor=Inline())
    assert tally.states == sites * tally.outcomes.total()
    assert Spec(states=7, native=native).states_of("sites") == 7


def test_encodings_are_units_like_any_other() -> None:
    spec = Spec(encodings=(EncodingsSpec("riscv64", "pid", 2_000),))
    tally = check(spec, executor=Inline())
    (summary,) = tally.encodings
    assert summary["encodings"] >= 2_000
    assert tally.same


def _sent(thing: Any) -> Any:
    """Return what arrives of something sent to another process."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_every_unit_travels() -> None:
    spec = Spec((subject(),), states=2, encodings=(EncodingsSpec("riscv64", "pid", 100),))
    for unit in some(units(spec)):
        done = work(_sent(spec), _sent(unit))
        assert _sent(done) == done


# -- rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "write module:object"),
        ("no_such_module:x", "cannot be imported"),
        (f"{RULES}:Forgetfull", "did you mean 'Forgetful'"),
        ("os:sep", "a str cannot be used as rules"),
    ],
)
def test_rules_that_are_none(text: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        load_rules(text)


@pytest.mark.parametrize("isa", ISAS)
def test_a_wrong_rule_fails_the_command(isa: str, tmp_path: Path) -> None:
    report = tmp_path / "found.json"
    words = ("testbins:tiny", "--isa", isa, "--every-instruction", "--states", "4", "--report", str(report))
    right, wrong = run(*words), run(*words, "--rules", f"{RULES}:{isa}")
    assert right.exit_code == 0, right.output
    assert right.output.startswith("same: ")
    assert wrong.exit_code == 1, wrong.output
    assert wrong.output.startswith("NOT the same: ")
    assert "became pc" in wrong.output
    assert not json.loads(report.read_text())["same"]


def test_a_patcher_under_test() -> None:
    result = run("testbins:tiny", "--isa", "x86_64", "--states", "2", "--rules", f"{RULES}:Forgetful")
    assert result.exit_code == 1
    assert "the breakpoint was never taken" in result.output
    assert " 0 firings" in result.output


# -- the command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name an ELF file"),
        (("no-such-file",), "no-such-file: no such file"),
        (("testbins:kernl",), "did you mean 'testbins:kernel'"),
        (("testbins:zoo", "--isa", "x86_64", "--function", "mian"), "did you mean 'main'"),
        (("testbins:tiny", "--report", "x.doc"), "cannot write reports as '.doc'"),
        (("testbins:tiny", "--rules", "x"), "write module:object"),
        (("--museum", "trap-flga"), "did you mean 'trap-flag'"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], message: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert message in line


def test_all_isas_of_our_own_programs_are_checked() -> None:
    result = run("testbins:tiny", "--states", "2", "--no-run")
    assert result.exit_code == 0, result.output
    assert "same: " in result.output


def test_the_museum_is_on_show() -> None:
    listed = run("--museum", "list")
    assert listed.exit_code == 0
    assert len(listed.output.splitlines()) >= 10
    assert run("--museum", listed.output.split()[0]).exit_code == 0


# -- what is left out is said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("testbins:zoo-dyn", "--isa", "x86_64", "--function", "main"), "zoo-dyn was not run: its interpreter /lib64/"),
        (("testbins:ls", "--isa", "riscv64"), "ls was not run: it is a program of the kernel guest"),
        (("testbins:plugin.so", "--isa", "i386"), "plugin.so was not run: it is not a program"),
        (
            ("testbins:kernel", "--isa", "x86_64", "--function", "sys_getpid", "--every-instruction", "--no-run"),
            "--every-instruction has no effect on fbt",
        ),
    ],
)
def test_what_a_check_leaves_out_is_said(words: tuple[str, ...], said: str) -> None:
    result = run(*words, "--states", "1")
    assert result.exit_code == 0
    assert [said in line for line in result.output.splitlines() if line.startswith("left out: ")] == [True]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("provider", ["fbt", "pid", "uprobe"])
def test_a_position_independent_program_is_checked_by_every_provider(isa: str, provider: str) -> None:
    """Its addresses in the check are not those in its file."""
    result = run("testbins:libzoo.so", "--isa", isa, "--provider", provider, "--states", "1", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("same: ")


def test_rules_of_another_isa_are_refused_in_one_line() -> None:
    result = run("testbins:tiny", "--isa", "aarch64", "--rules", f"{RULES}:x86_64")
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert "are made from those of x86_64" in line
    assert line.endswith("is for aarch64")


def test_rules_that_raise_are_not_taken_for_a_crash_of_the_emulator() -> None:
    result = run("testbins:tiny", "--isa", "x86_64", "--rules", f"{RULES}:RAISES", "--states", "1", "--no-run")
    assert result.exit_code == 1
    assert "the rules failed at 6 sites" in result.output
    assert "ZeroDivisionError" in result.output


def test_nothing_checked_is_not_called_the_same() -> None:
    assert facts.verdict(Tally({})) == "nothing was checked"
