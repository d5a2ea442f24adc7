"""^C in the commands: the data up to then are shown, or one line says that the user interrupted."""

from __future__ import annotations

import signal

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
