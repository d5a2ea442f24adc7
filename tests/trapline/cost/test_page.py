"""The page, the plots and the curves: what is measured is what they show."""

from __future__ import annotations

import re

import pytest

from emu.isa import ISAS
from trapline.cost import plots, scale
from trapline.cost.hit_work import Events
from trapline.cost.models import chosen
from trapline.cost.page import page
from trapline.cost.rows import Anatomy, Idle, Part, Row

PARTS = {Part.ENTRY: 21, Part.DISPATCH: 15, Part.ARGUMENTS: 0, Part.DISPLACED: 13, Part.RETURN: 18}
TRAP = Row("x86_64", "fbt", "entry", 67.0, Events(traps=1), 1.0, 60, Anatomy(PARTS, 2, 69, 18, 4), Idle())
CALL = Row("riscv64", "sdt", "a <nop> & a jump", 31.0, Events(), 0.0, 60, Anatomy({Part.ENTRY: 1}), Idle(4, None, 3.5))
CURVES = [
    scale.Curve(isa, axis, (scale.Point(1, 67, 900), scale.Point(8, 134, 1800)))
    for isa in ("x86_64", "riscv64")
    for axis in scale.AXES
]


@pytest.fixture(scope="module")
def drawn():
    pytest.importorskip("matplotlib")
    return plots.draw([TRAP, CALL], CURVES, chosen([]))


def test_every_plot_is_there_in_both_themes_and_both_formats(drawn, tmp_path):
    names = {path.name for path in plots.save(drawn, tmp_path / "new")}
    expected = {
        f"{name}-{theme}.{kind}"
        for name in ("parts", "prices", "scaling")
        for theme in ("light", "dark")
        for kind in ("svg", "png")
    }
    assert names == expected
    assert all((tmp_path / "new" / name).read_bytes()[:4] in {b"\x89PNG", b"<?xm"} for name in names)


def test_a_plot_is_text_with_the_figures_and_the_same_each_time(drawn):
    parts = next(plot for plot in drawn if plot.name == "parts")
    svg = parts.pictures["svg"].decode()
    assert ">67</text>" in svg
    assert re.search(r">x86_64\s+fbt entry</text>", svg)
    light, _ = plots.draw([TRAP, CALL], [], [])
    assert light.pictures == parts.pictures


def test_the_page_has_every_row_and_loads_nothing(drawn):
    text = page([TRAP, CALL], chosen([]), drawn)
    assert text.count('data-isa="x86_64"') == text.count('data-isa="riscv64"') == 2
    assert "a &lt;nop&gt; &amp; a jump" in text
    assert text.count("<img ") == 3
    addresses = re.findall(r'(?:src|srcset|href)="([^"]*)"', text)
    assert {address.split(":")[0].split(",")[0] for address in addresses if address[0] != "#"} == {"data"}
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)


def test_a_page_without_plots_says_why():
    assert "There are no plots: why." in page([TRAP], chosen([]), [], plotless="There are no plots: why.")


@pytest.mark.parametrize("isa", ["x86_64", "riscv64"])
def test_a_call_costs_a_trap_for_each_probe_on_its_way(isa, monkeypatch):
    monkeypatch.setattr(scale, "_CALLS", 10)
    monkeypatch.setattr(scale, "_TURNS", 1)
    trap = {"x86_64": 67, "riscv64": 155}[isa]

    def measured(numbers):
        return [point.instructions for point in scale._points(ISAS[isa], iter(numbers))]

    one = "fbt::sched_relinquish:entry { @ = count(); }"
    both = "fbt::sched_relinquish:entry, fbt::sys_getpid:entry { @ = count(); }"
    assert measured([(1, [one], 1), (2, [both], 1), (3, [one] * 3, 1), (2, [one], 2)]) == [trap] * 4
    functions = scale._functions(ISAS[isa])
    assert functions[0] == "sched_relinquish"
    assert not {*functions} & {*scale._others(ISAS[isa])}
