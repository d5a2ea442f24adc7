"""The layout of Unicorn's library: experiments find the known table, and wrong answers are noticed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from emu.engine.qemu import block_layout as blocks_layout
from emu.engine.qemu import layout as engine_layout
from emu.isa.calibration import KNOWN, SUBJECTS
from emu.unicorn_layout import find as finding
from emu.unicorn_layout import layout, library
from emu.unicorn_layout.bench import Bench, NotFoundError, only, places
from emu.unicorn_layout.errors import UnusableLibraryError
from emu.unicorn_layout.find import CalibrationError, experiment, find, understood
from emu.unicorn_layout.library import Library
from emu.unicorn_layout.read import Reader

ROOT = Path(__file__).resolve().parents[3]
TABLES = {layout.COMMON: dict(engine_layout.KNOWN), **KNOWN}
OTHER = Library("2.1.3", Path(__file__), "another host")


@pytest.mark.skipif(not library.this().is_known, reason="this is not the library whose layout is in tables")
def test_experiments_find_the_known_tables():
    assert understood(experiment()) == TABLES
    assert understood(experiment(layout.BLOCKS)) == {layout.BLOCKS: dict(blocks_layout.KNOWN)}


def test_the_known_library_is_told_without_experiments():
    def never(_library):
        raise AssertionError

    this = library.this()
    if not this.is_known:
        pytest.skip("this is not the library whose layout is in tables")
    assert layout.choose(this, never).parts is None


def test_the_same_version_of_another_build_is_not_the_known_one(tmp_path):
    copy = tmp_path / "libunicorn.so.2"
    copy.write_bytes(b"\x7fELF")
    assert not library.this()._replace(path=copy).is_known
    assert not library.this()._replace(path=tmp_path / "none").is_known


def answer(**parts):
    return json.dumps({"reason": "", "parts": parts}).encode()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b"", "no answer that can be read"),
        (b"null", "no answer that can be read"),
        (b'{"reason": "", "parts": 5}', "no answer that can be read"),
        (answer(common={"UC_CPU": -8}), "cannot be right"),
        (answer(common={"UC_CPU": 1 << 40}), "cannot be right"),
        (answer(common={"UC_CPU": "8"}), "cannot be right"),
        (b'{"reason": "the CPU: no places fit", "parts": {}}', "did not find the CPU: no places fit"),
    ],
)
def test_a_scrambled_answer_is_not_used_and_there_is_a_reason(given, reason):
    with pytest.raises(UnusableLibraryError, match=reason):
        layout.choose(OTHER, lambda _library: understood(given))


def test_an_offset_that_is_missing_is_noticed(monkeypatch):
    monkeypatch.setattr(layout._Current, "layout", None)
    layout.assume(layout.WheelLayout({"x": {"A": 8}}))
    assert layout.part("x", {"A": 0}) == {"A": 8}
    with pytest.raises(UnusableLibraryError, match="calibration did not find x B; pip install unicorn=="):
        layout.part("x", {"A": 0, "B": 16})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "ended with signal 11"),
        ("import sys; sys.exit('no pipes here')", "failed: no pipes here"),
        ("print('{')", "no answer that can be read"),
    ],
)
def test_a_process_that_fails_is_not_remembered(monkeypatch, tmp_path, code, reason):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    monkeypatch.setattr(finding, "_CODE", code)
    with pytest.raises(CalibrationError, match=reason):
        find(OTHER)
    assert not list(tmp_path.iterdir())


def test_an_answer_is_kept_and_a_damaged_one_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    made = []
    monkeypatch.setattr(finding, "experiment", lambda _what: made.append(1) or answer(common={"UC_CPU": 8}))
    assert find(OTHER) == find(OTHER) == {"common": {"UC_CPU": 8}}
    assert len(made) == 1
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-3] + b"xyz")
    assert find(OTHER) == {"common": {"UC_CPU": 8}}
    assert len(made) == 2


def test_memory_that_is_not_mapped_is_not_read():
    reader = Reader()
    data = bytes(range(256)) * 40
    assert reader.read(id(data) + bytes.__basicsize__ - 1, len(data)) == data
    assert reader.read(8, 16) == reader.read((1 << 63) + 8, 16) == b""
    assert reader.word(8) is None
    reader.close()


def test_an_experiment_needs_exactly_one_place():
    assert places(b"\1\0\0\0\2\1\0\0\1\0\0\0", 1, 4) == {0, 8}
    assert only("a place", {8}) == 8
    with pytest.raises(NotFoundError, match="2 places fit"):
        only("a place", {0, 8})
    with pytest.raises(NotFoundError, match="no place fit"):
        only("a place", ())


def test_a_function_that_the_library_does_not_export_is_told():
    reader = Reader()
    with pytest.raises(NotFoundError, match="the library does not export no_such_function"):
        Bench(SUBJECTS[0], 0, reader).function("no_such_function")
    reader.close()


def test_doctor_says_how_and_what_to_do():
    if not library.this().is_known:
        pytest.skip("this is not the library whose layout is in tables")
    command = [sys.executable, "-m", "trapline", "doctor", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].endswith("its layout is known")
    assert f"common   UC_CPU             {engine_layout.KNOWN['UC_CPU']:#8x}" in lines
    assert f"blocks   UC_LEVEL           {blocks_layout.KNOWN['UC_LEVEL']:#8x}" in lines


# The program of a process in which the library is another one, and an experiment fails.
UNUSABLE = """
import sys
from emu.unicorn_layout import find, library
library._KNOWN_BUILD = b"another"
find._CODE = "import sys; sys.exit('no pipes here')"
sys.argv = ["trapline", *sys.argv[1:]]
from trapline.start import main
main()
"""


@pytest.mark.parametrize("command", [["doctor"], ["dtrace", "-qn", "BEGIN"], ["sites", "testbins:zoo"], ["demo"]])
def test_a_library_whose_layout_is_not_found_is_refused_in_one_line(monkeypatch, tmp_path, command):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    run = [sys.executable, "-c", UNUSABLE, *command]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    (line,) = done.stderr.splitlines()
    reason = "cannot be used: calibration failed: no pipes here; pip install unicorn==2.1.4, on Linux or macOS"
    assert line == f"trapline: {library.this()} {reason}"
    assert (done.returncode, done.stdout) == (1, "")
