"""The page of the assembly bench shows the decisions, and the original beside what is patched."""

import html
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from emu.isa import ISAS
from trapline.lab.displace.bench import displace
from trapline.lab.displace.run import run
from trapline.player.bench import bench_page

CHROMIUM = shutil.which("chromium")
CODE = {
    "x86_64": "push rbp; mov rbp, rsp",
    "aarch64": "stp x29, x30, [sp, #-16]!; ldxr x1, [x0]",
    "riscv64": "c.addi16sp sp, -32; auipc a0, 1",
    "i386": "push ebp; mov ebp, esp",
}


def cells(text):
    found = re.findall(r"<td[^>]*>(.*?)</td>", text, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in found]


@pytest.mark.parametrize("isa", ISAS)
def test_each_instruction_has_its_fates(isa):
    found = displace(isa, CODE[isa])
    text = html.unescape(bench_page(isa, found))
    articles = text.split("<article")[1:]
    assert len(articles) == len(found) == 2
    for one, article in zip(found, articles, strict=True):
        assert one.text in article
        for decision in one.decisions:
            assert decision.why in article
            assert decision.source in article
            assert not decision.copy or decision.copy.code in article
    assert "Nothing has run" in text
    assert not re.findall(r'(?:src|href)="(?!#)', text)


def test_a_run_shows_the_values_of_every_cpu():
    found = displace("x86_64", CODE["x86_64"])
    done = run(found, "x86_64", {"rbp": 7})
    first = done.executed[0]
    values = {each.provider: {one.what: one.after for one in each.changes} for each in first.probed}
    right = {one.what: one.after for one in first.changes}
    assert right["rsp"] == first.registers["rsp"] - 8
    assert all(each == right for each in values.values())
    article = bench_page("x86_64", found, done).split("<article")[1]
    row = cells(re.search(r'<tr><th scope="row">rsp.*?</tr>', article, re.DOTALL)[0])
    assert row == [f"{first.registers['rsp']:#x}", *[f"{right['rsp']:#x}"] * (1 + len(values))]
    assert "NOT the same" not in article


def test_a_difference_stands_out():
    found = displace("riscv64", CODE["riscv64"])
    done = run(found, "riscv64", {})
    first = done.executed[0]
    change = replace(first.changes[0], after=1)
    wrong = replace(first.probed[0], changes=(change,), differences=("sp: 0x2; patched: 0x1",))
    broken = replace(first, probed=(wrong, *first.probed[1:]))
    page = bench_page("riscv64", found, replace(done, executed=(broken, *done.executed[1:])))
    article = page.split("<article")[1]
    assert f"NOT the same under {wrong.provider}" in article
    assert '<td class="bad">0x1 &ne;</td>' in article


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: the page's script is not run")
def test_the_address_chooses_the_step(tmp_path):
    file = tmp_path / "bench.html"
    file.write_text(bench_page("aarch64", displace("aarch64", CODE["aarch64"])), "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"{file.as_uri()}#step=1"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert re.search(r'<p id="sentence"[^>]*>ldxr x1, \[x0\]: ', shown)
    assert ['hidden=""' in article for article in re.findall(r"<article[^>]*>", shown)] == [True, False]
