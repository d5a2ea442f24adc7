"""`trapline race`: what it prints, the page with lanes, exit statuses."""

import json

import pytest
from click.testing import CliRunner

from trapline.commands.race import race_command

NOP = "code:0f1f440000c3:0:e900010000"


def run(*words):
    return CliRunner().invoke(race_command, words)


def test_a_failure_is_told_step_by_step_and_ends_with_its_replay(tmp_path):
    page = tmp_path / "race.html"
    done = run("--patch", NOP, "--isa", "x86_64", "--method", "write-once", "--html", str(page))
    assert done.exit_code == 1
    assert "x86_64   write-once    FAILS: torn" in done.output
    assert "not modelled:" in done.output
    line = done.output.partition("--replay '")[2].partition("'")[0]
    again = run("--replay", line)
    assert again.exit_code == 1
    assert again.output.splitlines()[-1] in done.output
    text = page.read_text()
    assert '<th scope="col">patcher</th><th scope="col">CPU 1</th>' in text
    assert "may fetch" in text


def test_a_method_that_holds_exits_with_0_and_says_how_much_was_explored():
    done = run("--patch", NOP, "--isa", "x86_64", "--method", "int3-first")
    assert done.exit_code == 0
    assert "holds:" in done.output
    assert "all of them" in done.output


def test_with_a_method_alone_a_function_of_the_kernel_guest_is_explored_on_each_isa_and_that_is_said():
    done = run("--method", "stop-machine", "--isa", "all")
    assert done.exit_code == 0
    assert done.output.count("stop-machine  holds:") == 4
    assert "trapline: without --patch, fbt::malloc:entry is explored" in done.output
    assert "name a patch with --patch" in run().output


def test_an_object_fails_on_its_own_isa_with_a_page_and_a_replay(tmp_path):
    page, file = tmp_path / "race.html", "testbins/built/riscv64/objects/poke-early.o"
    done = run("--object", file, "--html", str(page))
    assert done.exit_code == 1
    assert "poke-early.o is for riscv64, not for i386: left out" in done.output
    assert "riscv64  patch_text_nosync FAILS: missed" in done.output
    assert "patch_text_nosync of poke-early.o" in page.read_text()
    line = done.output.partition("--replay '")[2].partition("'")[0]
    assert f"object={file} glue=text-poke" in line
    assert run("--replay", line).output.splitlines()[-1] in done.output


def test_json_has_the_trace():
    done = run("--patch", NOP, "--isa", "x86_64", "--method", "write-once", "--json", "-")
    (found,) = json.loads(done.output)
    assert found["failure"]["kind"] == "torn"
    assert found["trace"][-1]["lane"] == 1


def test_an_isa_without_the_provider_is_left_out_and_said():
    done = run("--patch", "kinst::malloc:entry", "--method", "stop-machine")
    assert done.exit_code == 0
    assert "kinst has no port to i386: left out" in done.output
    assert run("--patch", "kinst::malloc:entry", "--isa", "i386").exit_code == 1


def test_a_file_is_explored_on_its_own_isa():
    file = "testbins/built/riscv64/linux/zoo"
    done = run("--patch", f"uprobe:{file}:fib:0", "--method", "new-page")
    assert done.exit_code == 0
    assert f"{file} is for riscv64, not for i386: left out" in done.output
    assert "riscv64  new-page      holds" in done.output


def test_the_usual_methods_are_those_of_the_provider_and_ours():
    done = run("--patch", "sdt::hardclock_cnt:", "--isa", "aarch64")
    assert [line.split()[1] for line in done.output.splitlines()[:2]] == ["rendezvous", "stop-machine"]


def test_the_list_names_sources():
    assert "text_poke_bp" in run("--list").output


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ((), 2, "--patch"),
        (("--patch", "fbt::maloc:entry"), 1, "did you mean"),
        (("--patch", "fbt:/nonexistent:f:entry"), 1, "/nonexistent"),
        (("--patch", NOP, "--method", "prayer"), 2, "prayer"),
        (("--patch", NOP, "--glue", "fbt"), 2, "are for --object"),
        (("--patch", NOP, "--handler", "mine"), 2, "are for --object"),
        (("--object", "testbins:poke.o", "--isa", "i386", "--handler", "mine"), 1, "poke.o does not define mine"),
        (("--object", "testbins:poke.o", "--method", "all"), 2, "mutually exclusive"),
        (("--object", "/nonexistent.o", "--isa", "i386"), 1, "/nonexistent.o"),
        (("--patch", NOP, "--isa", "i386", "--scenario", "fork"), 1, "only the code of processes"),
        (
            ("--patch", NOP, "--isa", "x86_64", "--method", "write-once", "--html", "/nonexistent/x"),
            2,
            "/nonexistent/x",
        ),
    ],
)
def test_wrong_usage_is_one_line(words, status, text):
    done = run(*words)
    assert done.exit_code == status
    assert text in done.output + str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit | OSError)
