"""The page of a race has a lane for each CPU, and its script shows the step that the address names."""

import html
import re
import shutil
import subprocess

import pytest

from trapline.lab.museum.gallery import find
from trapline.player.race_page import lanes_page

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def race():
    exhibit = find("five-nops")
    return exhibit.check.lanes(exhibit)


def test_each_step_is_in_the_lane_of_its_cpu(race):
    rows = re.findall(r"<tr>(<td>\d+</td>.*?)</tr>", lanes_page(race), re.DOTALL)
    assert len(rows) == len(race["rows"])
    for row, text in zip(race["rows"][1:], rows[1:], strict=True):
        cells = re.findall(r"<td>(.*?)</td>", text, re.DOTALL)[1:]
        assert html.unescape(cells[row["lane"]].split(" <strong>")[0].strip()) == row["text"]
        assert not any(cell.strip() for number, cell in enumerate(cells) if number != row["lane"])
    assert race["rows"][-1]["failure"].startswith("torn")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
def test_the_address_chooses_the_step(race, tmp_path):
    file = tmp_path / "race.html"
    file.write_text(lanes_page(race), "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"{file.as_uri()}#step=6"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    sentence = re.search(r'<p id="sentence"[^>]*>(.*?)</p>', shown)[1]
    assert html.unescape(sentence) == f"6. patcher: {race['rows'][6]['text']}"
    assert "may fetch" in shown
