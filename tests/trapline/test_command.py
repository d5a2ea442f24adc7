"""The command for a user: help, exit codes, one line for every mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emu.native import NOT_INSTALLED
from tests.support.command import run_trapline
from trapline.cli import main


def test_help_names_the_commands():
    run = run_trapline(["--help"])
    assert run.returncode == 0
    for command in ("dtrace", "sites", "step", "demo"):
        assert f"  {command} " in run.stdout


def test_help_imports_no_command():
    program = (
        "import sys; from trapline.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'unicorn', 'capstone', 'lark', 'rich', 'trapline.commands.dtrace'} & {*sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.endswith("\n[]\n")


def test_a_trace_imports_no_part_that_it_does_not_ask_for():
    program = (
        "import sys; from trapline.cli import main\n"
        "try: main(['dtrace', '-qn', 'BEGIN { exit(0) }'])\n"
        "finally: print([name for name in sys.modules if name.startswith(('emu.elf.link', 'trapline.lab'))\n"
        "    or name in {'html', 'elftools', 'emu.elf.writer', 'trapline.export.formats'}\n"
        "    or name in {'fractions', 'trapline.consumer.program.save', 'emu.guest.kernel.smp.turns'}\n"
        "    or name in {'capstone', 'llvmlite.binding'} or {*name.split('.')} & {'aarch64', 'riscv64', 'i386'}\n"
        "    or name.rpartition('.')[2] in {'calibration', 'bench', 'find', 'disassemble'}])"
    )
    for _ in range(2):  # the first run fills the cache: it scans the kernel, and may compile
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.endswith("[]\n")


def test_missing_llvmlite_is_said_once(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("trapline.cli.missing", lambda: NOT_INSTALLED)
    monkeypatch.setattr("trapline.framework.base.engines.available", lambda: False)
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    monkeypatch.delenv("TRAPLINE_ENGINE", raising=False)
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["check", "--museum", "list"])
    advice = (
        "trapline: llvmlite is not installed, so probes fire many times more slowly: pip install 'trapline[fast]'\n"
    )
    assert capsys.readouterr().err == advice


@pytest.mark.parametrize("command", ["sites", "step", "demo", "dtrace"])
def test_every_command_has_help(command):
    run = run_trapline([command, "--help"])
    assert run.returncode == 0
    assert run.stdout.startswith("Usage:")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nosuch"], 2, "Error: No such command 'nosuch'."),
        (
            ["dtrace", "--isa", "m68k", "-n", "BEGIN"],
            2,
            "dtrace: --isa m68k: choose from x86_64, aarch64, riscv64, i386",
        ),
        (["dtrace", "-x", "fidelity=linux", "-n", "BEGIN"], 2, "dtrace: -x fidelity linux: choose from exact, freebsd"),
        (["dtrace", "--nosuch", "-n", "BEGIN"], 2, "dtrace: illegal option -- -nosuch"),
        (["dtrace", "-A", "-l"], 2, "dtrace: only one of the [-AGhlV] options can be specified at a time"),
        (["dtrace", "-h", "-n", "BEGIN"], 1, "dtrace: -h requires a script (-s) with provider definitions"),
        (["dtrace", "-x", "bufsize=much", "-n", "BEGIN"], 1, "dtrace: failed to set -x bufsize: Invalid value for"),
        (
            ["dtrace", "-n", "BEGIN", "-o", "/nosuch/file"],
            1,
            "dtrace: failed to open output file '/nosuch/file': No such",
        ),
        (["dtrace", "-c", "true"], 1, "dtrace: no probes specified"),
        (["dtrace", "--guest", "linux", "-n", "BEGIN"], 1, "dtrace: the Linux guest needs a program: -c 'PROGRAM"),
        (
            ["dtrace", "--root", "/nosuch", "-n", "BEGIN", "-c", "ls"],
            1,
            "dtrace: /nosuch: not a directory; --root",
        ),
        (["lockstat", "ecko", "hi"], 2, "lockstat: ecko: the guest has no such program (did you mean 'echo'?)"),
        (["dtrac"], 2, "Error: No such command 'dtrac'. (did you mean 'dtrace'?)"),
        (["step", "-n", "BEGIN", "--html", ""], 2, "Error: --html '': it is empty"),
        (["step", "-n", "BEGIN", "--html="], 2, "Error: --html '': it is empty"),
        (["bench", "--mechanism", ""], 2, "Error: --mechanism '': it is empty"),
        (["sites", ""], 2, "Error: an argument is empty"),
        (["uprobe", "p:zoo:main", "-c", ""], 2, "Error: -c '': it is empty"),
        (["uprobe", "p:zoo:main", "-c", " "], 2, "Error: -c  : a command is missing"),
        (["usdt", "zoo:begin", "-c", " "], 2, "Error: -c  : a command is missing"),
        (["step", "-n", "BEGIN", "-c", " "], 1, "Error: -c  : a command is missing"),
        (["dtrace", "-n", "BEGIN", "-o", ""], 2, "dtrace: -o '': it is empty"),
        (["dtrace", "-n", "BEGIN", "--root", ""], 2, "dtrace: --root '': it is empty"),
        (["plockstat", "-A"], 2, "plockstat: a command is missing"),
        (["plockstat", "--jsonl", "", "contend"], 2, "plockstat: --jsonl '': it is empty"),
        (["lockstat", "-o", "", "ls"], 1, "lockstat: -o '': it is empty"),
        (["plockstat", "-A", "-p"], 2, "plockstat: a pid is missing"),
        (["plockstat", "./ls"], 1, "plockstat: ./ls: the guest has no such program"),
        (["dtrace", "--guest", "linux", "-n", "BEGIN", "-c", "nosuch"], 1, "dtrace: nosuch: no such program; give its"),
        (["dtrace", "--guest", "linux", "-n", "BEGIN", "-c", "/etc/passwd"], 1, "dtrace: /etc/passwd: not executable"),
        (["dtrace", "-n", "BEGIN { stop(); }"], 1, "dtrace: could not enable tracing: "),
    ],
)
def test_a_mistake_is_reported_without_a_traceback(arguments, status, message):
    run = run_trapline(arguments)
    assert run.returncode == status
    told = [line for line in run.stderr.splitlines() if line.startswith(message)]
    assert told, run.stderr
    assert "Traceback" not in run.stderr


def test_no_arguments_is_a_usage_error():
    run = run_trapline(["dtrace"])
    assert run.returncode == 2
    assert run.stderr.startswith("Usage: dtrace")


def test_a_kernel_that_panics_is_reported_with_its_registers_and_its_stack():
    run = run_trapline(["dtrace", "--isa", "riscv64", "-x", "fidelity=freebsd", "-qn", "fbt:::entry { @ = count(); }"])
    assert run.returncode == 1
    first, *rest = run.stderr.splitlines()
    assert first.startswith("dtrace: guest kernel panic: ")
    assert any("sp ffffffc0" in line for line in rest)
    assert any(line.startswith("    kernel`") for line in rest)
    assert "Traceback" not in run.stderr


def test_a_command_of_the_guest_is_seen_on_the_console():
    run = run_trapline(["dtrace", "-qn", "BEGIN", "-c", "echo from the guest"])
    assert "from the guest\n" in run.stdout


def test_output_goes_to_the_file_and_is_appended(tmp_path):
    file = tmp_path / "out"
    for _ in range(2):
        run = run_trapline(["dtrace", "-o", str(file), "-qn", 'BEGIN { printf("hello\\n"); exit(0); }'])
        assert (run.returncode, run.stdout) == (0, "")
    assert file.read_text() == "hello\n\n" * 2


def test_a_disk_that_is_full_is_reported():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as output:
        run = subprocess.run(
            [sys.executable, "-m", "trapline", "dtrace", "-n", "BEGIN { exit(0); }"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "dtrace: failed to write output: No space left on device"


def test_the_demo_shows_three_isas_and_one_firing():
    run = run_trapline(["demo"])
    assert run.returncode == 0
    for title in ("x86-64", "AArch64", "RISC-V"):
        assert title in run.stdout
    assert "1. patched bytes" in run.stdout
    assert ". resume" in run.stdout


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("fbt::mallox:entry", "fbt::malloc:entry"),
        ("fbt:kernal:malloc:entry", "fbt:kernel:malloc:entry"),
        ("syscal:::", "syscall:::"),
        ("proc:::exec-sucess", "proc:::exec-success"),
    ],
)
def test_a_misspelled_probe_is_reported_with_its_neighbour(wanted, meant):
    run = run_trapline(["dtrace", "-n", wanted])
    assert run.stderr.endswith(f"probe description {wanted} does not match any probes (did you mean {meant}?)\n")
    assert run_trapline(["dtrace", "-ln", wanted]).stderr.endswith(f"(did you mean {meant}?)\n")
    assert "did you mean" not in run_trapline(["dtrace", "-n", "nosuch*:::"]).stderr
