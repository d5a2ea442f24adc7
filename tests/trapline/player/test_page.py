"""A page needs no network, and its script shows the step that its address names."""

import html
import json
import re
import shutil
import subprocess

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.lab.step.recorded import GUEST, recorded
from trapline.lab.displace.bench import displace
from trapline.lab.museum.gallery import find
from trapline.player.bench import bench_page
from trapline.player.model import Played
from trapline.player.page import embedded, page, race_page

CHROMIUM = shutil.which("chromium")


def made(*isas, path=GUEST):
    return page([Played(isa, recorded(isa, path=path)) for isa in isas])


@pytest.mark.parametrize("isa", ISAS)
def test_the_page_has_the_data_and_a_sentence_for_each_step(isa):
    text = made(isa)
    data = json.loads(re.search(r'<script type="application/json" id="recordings">(.*?)</script>', text, re.DOTALL)[1])
    steps = recorded(isa, path=GUEST).firings[0].steps
    assert len(data[0]["firings"][0]["steps"]) == len(steps)
    listed = html.unescape(text)
    assert all(step.sentence in listed for step in steps)


def test_nothing_is_loaded_from_elsewhere():
    text = made("x86_64")
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', text)
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "@import" not in text


def test_a_recording_cannot_end_its_script_element():
    assert "<" not in embedded({"text": "</script><b>"})
    assert json.loads(embedded({"text": "</script>"})) == {"text": "</script>"}


def test_the_page_works_by_keyboard_and_for_screen_readers():
    text = made("x86_64")
    assert 'id="sentence" role="status" aria-live="polite"' in text
    assert all('aria-label="' in button for button in re.findall(r"<button[^>]*id=[^>]*>", text))
    assert 'lang="en"' in text
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text


def test_every_pane_has_a_name_and_can_be_scrolled_by_keyboard():
    text = made("x86_64")
    titles = set(re.findall(r'<h2 id="([^"]+)"', text))
    panes = re.findall(r'<section id="[\w-]+-pane" aria-labelledby="([^"]+)"', text)
    scrolled = re.findall(r'<div id="\w+" tabindex="0" role="group" aria-labelledby="([^"]+)"', text)
    assert len(panes) == 9
    assert set(panes) == set(scrolled) == titles


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    run = run_trapline(["displace", "riscv64", "c.nop", "--html", str(tmp_path / "no" / "a")])
    assert run.returncode == 2
    assert run.stderr == f"Error: {tmp_path / 'no' / 'a'}: no such file or directory\n"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
def test_the_address_chooses_the_step_and_the_recording(tmp_path):
    file = tmp_path / "player.html"
    file.write_text(made("x86_64", "riscv64"), "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"{file.as_uri()}#step=42&recording=1"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    step = recorded("riscv64", path=GUEST).firings[0].steps[42]
    sentence = re.search(r'<p id="sentence"[^>]*>(.*?)</p>', shown)[1]
    assert html.unescape(sentence) == step.sentence
    assert 'data-step="42"' in shown
    registers = re.search(r'<div id="registers"[^>]*>(.*?)</div>', shown, re.DOTALL)[1]
    assert all(f"{after:#018x}" in registers for _, after in step.registers.values())
    others = re.search(r'<div id="others"[^>]*>(.*?)</div>', shown, re.DOTALL)[1]
    assert "x86_64" in others


@pytest.fixture(scope="module")
def race():
    exhibit = find("five-nops")
    return exhibit.check.player_data(exhibit)


def test_each_step_is_in_the_lane_of_its_cpu(race):
    rows = re.findall(r"<tr>(<td>\d+</td>.*?)</tr>", race_page(race), re.DOTALL)
    assert len(rows) == len(race["rows"])
    for row, text in zip(race["rows"][1:], rows[1:], strict=True):
        cells = re.findall(r"<td>(.*?)</td>", text, re.DOTALL)[1:]
        assert html.unescape(cells[row["lane"]].split(" <strong>")[0].strip()) == row["text"]
        assert not any(cell.strip() for number, cell in enumerate(cells) if number != row["lane"])
    assert race["rows"][-1]["failure"].startswith("torn")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
def test_the_address_chooses_the_step(race, tmp_path):
    file = tmp_path / "race.html"
    file.write_text(race_page(race), "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"{file.as_uri()}#step=6"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    sentence = re.search(r'<p id="sentence"[^>]*>(.*?)</p>', shown)[1]
    assert html.unescape(sentence) == f"6. patcher: {race['rows'][6]['text']}"
    assert "may fetch" in shown


def driven(tmp_path, text, script):
    """Return what `script` leaves in the page's element #driven."""
    file = tmp_path / "driven.html"
    file.write_text(text + f"<pre id=driven></pre><script>{script}</script>", "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    shown = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=60, check=True).stdout
    return json.loads(html.unescape(re.search(r'<pre id="driven">(.*?)</pre>', shown, re.DOTALL)[1]))


PRESS = """
const slider = document.getElementById("slider"), told = [];
const now = () => Number(slider.value);
slider.focus();
for (const key of KEYS) {
  const event = new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true});
  told.push([key, slider.dispatchEvent(event), now()]);
}
document.getElementById("driven").textContent = JSON.stringify(told);
"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
@pytest.mark.parametrize("kind", ["player", "race", "bench"])
def test_keys_move_as_they_say_when_the_slider_has_the_focus(kind, race, tmp_path):
    text = {
        "player": lambda: made("riscv64"),
        "race": lambda: race_page(race),
        "bench": lambda: bench_page("riscv64", displace("riscv64", "c.nop; c.nop; c.nop")),
    }[kind]()
    keys = ["PageDown", "PageDown", "PageUp", "ArrowRight", "ArrowLeft", "End", "Home"]
    told = driven(tmp_path, text, PRESS.replace("KEYS", json.dumps(keys)))
    at = [step for _, _, step in told]
    assert not any(goes_on for _, goes_on, _ in told), "the slider moves by itself, too"
    assert 0 < at[0] < at[1]
    assert at[2] < at[1]
    assert at[3] == at[2] + 1
    assert at[4] == at[2]
    assert at[5] >= at[1]
    assert at[6] == 0


SEEN = """
const told = [], last = Number(document.getElementById("slider").max);
for (let step = 0; step <= last; step++) {
  location.hash = `#step=${step}`;
  window.dispatchEvent(new HashChangeEvent("hashchange"));
  const pane = document.getElementById("registers"), box = pane.getBoundingClientRect();
  for (const cell of pane.querySelectorAll(".lit")) {
    const at = cell.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) told.push([step, cell.textContent]);
  }
}
document.getElementById("driven").textContent = JSON.stringify(told);
"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
@pytest.mark.parametrize("isa", ISAS)
def test_every_register_that_changes_is_in_sight(isa, tmp_path):
    assert driven(tmp_path, made(isa), SEEN) == []


@pytest.mark.parametrize("isa", ISAS)
def test_the_probed_function_has_only_the_program_s_own_instructions(isa):
    listing = recorded(isa, path=GUEST).firings[0].listing
    before, enabled = ([line.split()[0] for line in listing[name]] for name in ("before", "enabled"))
    assert before == enabled, "a line is an instruction of the program, patched or not"
    assert sum(one != other for one, other in zip(listing["before"], listing["enabled"], strict=True)) == 1


def test_a_page_of_the_museum_has_its_story_and_its_sources(tmp_path):
    for name in ("five-nops", "half-instruction"):
        exhibit, file = find(name), tmp_path / f"{name}.html"
        assert run_trapline(["check", "--museum", name, "--html", str(file)]).returncode == 0
        text = html.unescape(re.sub(r"</?code>", "`", file.read_text("utf-8")))
        for wanted in (exhibit.system, *exhibit.description, exhibit.was, exhibit.now, *exhibit.references):
            assert wanted in text
    assert "it holds: " in (tmp_path / "five-nops.html").read_text("utf-8")
