"""benchmarks/README.md says what the saved results say."""

from __future__ import annotations

import json
import zipfile

import pytest

from benchmarks import models, prose, wheel_size, wheels
from benchmarks.figures import Scale
from emu.isa import ISAS


@pytest.mark.parametrize("page", prose.PAGES, ids=lambda page: page.name)
def test_a_page_says_what_the_results_say(page):
    text = page.read_text("utf-8")
    assert prose.written(text, prose.PAGES[page]) == text, "python -m benchmarks.prose writes it anew"


def test_the_saved_predictions_are_those_of_the_models():
    saved = json.loads((prose.RESULTS / "models.json").read_text())
    assert [list(row) for row in models.measure(list(ISAS.values()), Scale()).rows] == saved["rows"]


def test_the_wheels_were_read_for_the_functions_that_are_called_today():
    assert json.loads(wheels.SAVED.read_text())["needed"] == len(wheels.needed())


def test_a_file_that_is_not_a_wheel_is_refused(tmp_path):
    (tmp_path / "unicorn-2-any.whl").write_text("no archive")
    with pytest.raises(wheels.WheelError, match="cannot be read"):
        wheels.read(tmp_path / "unicorn-2-any.whl")


def test_every_file_of_a_wheel_belongs_to_one_part(tmp_path):
    with zipfile.ZipFile(tmp_path / "trapline.whl", "w") as archive:
        for name in ("testbins/built/i386/kernel", "trapline/lab/museum/gallery.py", "trapline/cli.py", "LICENSE"):
            archive.writestr(name, name)
    found = wheel_size.measured(tmp_path / "trapline.whl")
    counted = {part: files for part, files, _packed, _unpacked in found["rows"] if files}
    parts = ("guests of i386", "museum", "the other code of `trapline`", "metadata, manual page, completions")
    assert counted == dict.fromkeys(parts, 1)
    assert found["guests"]["packed"] == len("testbins/built/i386/kernel")


def test_another_result_makes_another_text(tmp_path, monkeypatch):
    for path in prose.RESULTS.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    path = tmp_path / "sweep.json"
    path.write_text(path.read_text().replace('"different": []', '"different": ["cxx"]'))
    before = prose.section()
    monkeypatch.setattr(prose, "RESULTS", tmp_path)
    assert "none different" in before
    assert "1 different" in prose.section()


def test_a_readme_without_marks_is_refused():
    with pytest.raises(ValueError, match="marks"):
        prose.written("# Benchmarks")
