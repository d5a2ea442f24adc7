"""^C in the commands: the data up to then are shown, or one line says that the user interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trapline.cli import main
from trapline.commands import kldstat
from trapline.commands.dtrace import Console

ENDLESS = ["sh", "-c", "echo started; spin 100000000"]


@pytest.fixture
def interrupting(monkeypatch):
    """Interrupt when the guest's program prints its first line.

    A shell starts background commands with SIGINT ignored, which the commands respect.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    written = Console.write

    def write(console, text):
        written(console, text)
        if text.startswith((b"started", b"contend")):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Console, "write", write)
    yield
    signal.signal(signal.SIGINT, before)


def status_of(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0


@pytest.mark.usefixtures("interrupting")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["lockstat", "-H", "-D", "1", *ENDLESS], "Adaptive mutex hold: "),
        (["dtrace", "-n", "syscall::write:entry { @[execname] = count(); }", "-c", ENDLESS[2]], "  echo "),
        (["plockstat", "contend"], "Mutex block"),
    ],
)
def test_an_interrupt_ends_the_trace_and_shows_what_there_is(arguments, shown, capsys):
    status = status_of(arguments)
    output, said = capsys.readouterr()
    assert (status, "Traceback" in said) == (0, False), said
    assert shown in output


def test_an_interrupt_that_a_command_has_no_use_for_is_reported_in_one_line(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kldstat, "kernel_guest", interrupted)
    assert status_of(["kldstat"]) == 130
    assert capsys.readouterr().err == "trapline: interrupted\n"


def _server_of(command: int) -> int | None:
    """Return the process that a command's workers are forked from."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == command and b"multiprocessing.forkserver" in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except (OSError, ValueError):
            continue
    return None


# A shell starts background commands with SIGINT ignored.
_COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from trapline.cli import main; main()"
)


@pytest.mark.parametrize("delay", [0, 0.5])
@pytest.mark.parametrize("command", ["check", "bench"])
def test_an_interrupt_of_all_processes_is_handled_by_the_one_that_has_started_the_others(command, delay, tmp_path):
    """While the others still import their modules, too: a terminal sends ^C to each of them."""
    check = ["testbins:kernel", "--isa", "riscv64", "--no-run", "--results", tmp_path / "results", "--states", "20000"]
    running = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, command, *(check if command == "check" else ())],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while _server_of(running.pid) is None and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert said.count("\n") == 1, said
    assert said.startswith("trapline: interrupted")
    assert running.returncode == 130
