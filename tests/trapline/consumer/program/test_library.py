"""D libraries: ours, which every guest has, and those of -L."""

from pathlib import Path

import pytest

from emu.displaced.cpu_core import CpuCore
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.support.fake_guest import FakeGuest, FakeProvider
from trapline import dof
from trapline.consumer.program.library import HOME, LibraryError, LibraryFile, files, in_order
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.d.types.names import NoNames
from trapline.framework.device.dtrace import DTrace


def libraries(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.d").write_text(text)
    return files([tmp_path])


def order(wanted, exists=lambda _kind, _name: True):
    return [one.path.stem for one in in_order(wanted, exists)]


def test_a_file_comes_after_those_it_depends_on(tmp_path):
    wanted = libraries(tmp_path, a="#pragma D depends_on library c.d\n", b="", c="#pragma D depends_on library b.d\n")
    assert order(wanted) == ["b", "c", "a"]


def test_a_file_whose_dependency_is_missing_is_left_out_and_those_that_need_it(tmp_path):
    wanted = libraries(
        tmp_path,
        a="#pragma D depends_on library b.d\n",
        b="#pragma D depends_on provider nosuch\n",
        d="",
    )
    assert order(wanted, lambda _kind, name: name != "nosuch") == ["d"]


def test_a_cycle_is_refused(tmp_path):
    wanted = libraries(tmp_path, a="#pragma D depends_on library b.d\n", b="#pragma D depends_on library a.d\n")
    with pytest.raises(LibraryError, match="cycle"):
        order(wanted)


def test_a_library_that_is_nowhere_is_refused(tmp_path):
    with pytest.raises(LibraryError, match=r"a\.d: the library depends on gone\.d"):
        order(libraries(tmp_path, a="#pragma D depends_on library gone.d\n"))


@pytest.mark.parametrize("text", ["#pragma D depends_on library a.d\n", "#pragma D depends_on library gone.d\n"])
def test_libraries_are_read_without_a_program(tmp_path, text):
    libraries(tmp_path, a=text)
    run = run_trapline(["dtrace", "-L", str(tmp_path), "-e"])
    assert run.returncode == 1
    assert run.stderr.startswith("dtrace: failed to load libraries: ")
    assert run.stderr.count("\n") == 1


def test_dtrace_debug_names_the_libraries_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("DTRACE_DEBUG", "1")
    libraries(tmp_path, a="#pragma D depends_on library c.d\n", b="", c="#pragma D depends_on library psinfo.d\n")
    run = run_trapline(["dtrace", "-L", str(tmp_path), "-e"])
    loaded = [line.rpartition("/")[2] for line in run.stderr.splitlines() if "library" in line]
    assert loaded[-3:] == ["c.d", "a.d", "b.d"]
    assert "psinfo.d" in loaded


def test_of_files_of_one_name_the_first_directory_counts(tmp_path):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.d").write_text(f"inline int X = {place == 'one'};\n")
    (found,) = files([tmp_path / "one", tmp_path / "two", tmp_path / "missing"])
    assert found.path.parent.name == "one"


@pytest.mark.parametrize("path", sorted(HOME.glob("*/*.d")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_our_files_define_what_a_scan_finds(path: Path):
    file = LibraryFile(path)
    assert file.names
    assert "=" not in file.names


@pytest.mark.parametrize("isa", ISAS)
def test_the_kernels_library_knows_processes_errors_signals_and_registers(isa):
    program = """fbt::sys_read:entry /curpsinfo->pr_pid > 1/ {
        printf("%s|%d|%c|%d %d %d %d|", curpsinfo->pr_psargs, curpsinfo->pr_ppid, curlwpsinfo->pr_sname,
            ENOENT, EAGAIN, SIGUSR1, curcpu->cpu_id);
        printf("%d", uregs[R_SP] != 0 && uregs[R_PC] == ucaller || 1); exit(0); }"""
    run = run_trapline(["dtrace", "--isa", isa, "-qn", program])
    assert run.stderr == ""
    arguments, parent, state, numbers, registers = run.stdout.rstrip().split("|")
    assert arguments.startswith(("sh", "/"))
    assert (parent.isdigit(), state, numbers, registers) == (True, "O", "2 35 30 0", "1")


@pytest.mark.parametrize("isa", ISAS)
def test_the_linux_library_knows_them_too(isa):
    program = """pid$target::fib:entry { printf("%s|%d %d %d", curpsinfo->pr_psargs, curpsinfo->pr_pid == pid, EAGAIN,
        SIGUSR1); exit(0); }"""
    run = run_trapline(["dtrace", "-qn", program, "-c", f"{images.linux(ISAS[isa], 'zoo')} recursion"])
    assert run.stdout.splitlines()[-1].endswith("zoo recursion|1 11 10")


def test_a_directory_of_the_users_comes_first_and_nolibs_leaves_all_out(tmp_path):
    (tmp_path / "mine.d").write_text("inline int ANSWER = 42;\ninline string NAME = execname;\n")
    run = run_trapline(["dtrace", "-L", str(tmp_path), "-qn", 'BEGIN { printf("%d", ANSWER); exit(0) }'])
    assert run.stdout == "42\n"
    run = run_trapline(["dtrace", "-x", "nolibs", "-n", "BEGIN { trace(ENOENT) }"])
    assert "failed to resolve ENOENT" in run.stderr


def test_a_mistake_in_a_library_is_reported_with_its_file(tmp_path):
    (tmp_path / "bad.d").write_text("inline int GOOD = 1;\ninline int BAD = nosuch;\n")
    run = run_trapline(["dtrace", "-L", str(tmp_path), "-n", "BEGIN { trace(1) }"])
    assert run.returncode == 1
    assert f'"{tmp_path}/bad.d", line 2: failed to resolve nosuch' in run.stderr


class Searched(FakeProvider):
    """A provider that remembers the searches for its probes."""

    def __init__(self, framework):
        super().__init__(framework, "searched")
        self.searches = []

    def provide(self, description):
        self.searches.append(description)


class OneModule(NoNames):
    def has_module(self, name):
        return name == "kernel"


@pytest.mark.parametrize(
    ("needs", "exist"),
    [
        ("module kernel", True),
        ("module vmlinux", True),
        ("module nosuch", False),
        ("provider searched", True),
        ("provider nosuch", False),
    ],
)
def test_whether_a_module_or_a_provider_exists_is_asked_without_a_search_for_probes(needs, exist):
    guest = FakeGuest()
    dtrace = DTrace(guest, CpuCore(), dof)
    provider = Searched(dtrace)
    tracer = Tracer(guest, dtrace, foreign=OneModule())
    text = f"#pragma D depends_on {needs}\ndtrace:::BEGIN {{ exit(0); }}"
    if exist:
        tracer.compiled(text)
    else:
        with pytest.raises(CompileError, match=f"the program needs {needs}, which does not exist"):
            tracer.compiled(text)
    # The one clause is searched for, if the program is compiled.
    assert {wanted[0] for wanted in provider.searches} <= {"dtrace"}
