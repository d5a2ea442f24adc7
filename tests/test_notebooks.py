"""The notebooks of docs/notebooks run, and results show themselves as tables there."""

import pytest

from tests.support.command import ROOT

jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables(path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = jupytext.read(path)
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [one for one in outputs if one.output_type == "error"]
    assert sum("<table" in one.get("data", {}).get("text/html", "") for one in outputs) >= 1


def test_there_are_three():
    assert len(NOTEBOOKS) >= 3
