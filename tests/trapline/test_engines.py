"""The selection of the engine: the user's choice, and the messages."""

from __future__ import annotations

import pytest

from emu.native import NOT_INSTALLED
from tests.support.command import run_trapline
from trapline import __version__
from trapline.framework.base import engines
from trapline.framework.base.engines import EngineError, ProgramEngine, chosen

PROGRAM = ["dtrace", "-qn", "BEGIN { @[1] = sum(6 * 7); exit(0); }"]


@pytest.mark.parametrize("engine", ProgramEngine)
def test_every_engine_runs_a_program(monkeypatch, engine):
    monkeypatch.setenv(engines.VARIABLE, engine)
    run = run_trapline(PROGRAM)
    assert (run.returncode, run.stdout.split(), run.stderr) == (0, ["1", "42"], "")


@pytest.mark.parametrize("engine", ProgramEngine)
def test_version_says_which_engine_runs(monkeypatch, engine):
    monkeypatch.setenv(engines.VARIABLE, engine)
    assert run_trapline(["--version", "-v"]).stdout.startswith(f"trapline, version {__version__}\nengine: {engine} (")
    assert run_trapline(["--version"]).stdout == f"trapline, version {__version__}\n"


def test_an_unknown_engine_is_one_line(monkeypatch):
    monkeypatch.setenv(engines.VARIABLE, "fast")
    run = run_trapline(PROGRAM)
    expected = "trapline: TRAPLINE_ENGINE: 'fast' is not an engine; there are native, reference\n"
    assert (run.returncode, run.stdout, run.stderr) == (1, "", expected)


def test_without_llvmlite_the_dif_machine_runs_unless_native_is_asked_for(monkeypatch):
    monkeypatch.delenv(engines.VARIABLE, raising=False)
    monkeypatch.setattr(engines, "available", lambda: False)
    monkeypatch.setattr(engines, "missing", lambda: NOT_INSTALLED)
    assert chosen() is ProgramEngine.REFERENCE
    monkeypatch.setenv(engines.VARIABLE, "native")
    with pytest.raises(EngineError, match="needs llvmlite"):
        chosen()
