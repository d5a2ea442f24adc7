"""docs/architecture.md, its picture, and the tree have the same folders and arrows."""

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.some import some

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("architecture", ROOT / "docs/site/architecture.py")
architecture = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = architecture  # dataclasses look there
_SPEC.loader.exec_module(architecture)
PAGE = architecture.PAGE.read_text("utf-8")
LAYERS = architecture.layers(PAGE)
NAMED = sorted(set(re.findall(r"`(\w+)`\s\(`([\w/.]+)`\)", PAGE)))
FILES = sorted(set(re.findall(r"`((?:emu|providers|trapline|testbins|docs)/[\w/.]+)`", PAGE)))


def test_the_page_has_the_three_layers():
    assert [layer.name for layer in LAYERS] == ["trapline", "providers", "emu"]


def test_the_folders_and_imports_of_the_page_are_those_of_the_tree():
    page = {layer.name: {one.name: set(one.imports) for one in layer.folders} for layer in LAYERS}
    assert page == architecture.tree(), "run: python docs/site/architecture.py --imports"


def test_every_folder_has_its_line():
    assert {one.text for layer in LAYERS for one in layer.folders}.isdisjoint({"", "?"})


def test_the_picture_is_that_of_the_page():
    made = architecture.picture(PAGE)
    assert architecture.PICTURE.read_text("utf-8") == made, "run: python docs/site/architecture.py"


def test_the_picture_has_every_folder_and_its_line():
    texts = [one.text for one in ET.parse(architecture.PICTURE).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314
    for layer in some(LAYERS):
        assert f"{layer.name}/" in texts
        for folder in layer.folders:
            assert folder.name in texts
            assert folder.text in " ".join(texts)


def test_the_picture_is_as_wide_as_its_boxes_and_arrows():
    root = ET.parse(architecture.PICTURE).getroot()  # noqa: S314
    width = int(root.get("width"))
    paths = [one for one in root.iter("{http://www.w3.org/2000/svg}path") if "arrow" in one.get("class")]
    across = [int(x) for one in paths for x in re.findall(r"(?<![\d,])(\d+),", one.get("d"))]
    for one in root.iter("{http://www.w3.org/2000/svg}rect"):
        x = int(one.get("x", "0"))
        across += [x, x + int(one.get("width"))]
    assert len(across) > 100
    assert min(across) >= 0
    assert max(across) <= width


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_the_arrows_that_are_drawn_imply_the_others(layer):
    imports = {one.name: set(one.imports) for one in layer.folders}
    drawn = architecture.reduced(imports)
    assert all(drawn[name] <= imports[name] for name in imports)
    assert {name: below(drawn, name) for name in drawn} == {name: below(imports, name) for name in imports}


def below(arrows, name):
    """Return all that a folder imports, directly or not."""
    return arrows[name].union(*(below(arrows, one) for one in arrows[name]))


@given(st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] > pair[1])))
def test_an_arrow_leads_to_a_lower_level(pairs):
    imports = {str(name): {str(low) for high, low in pairs if high == name} for name in range(12)}
    drawn = architecture.reduced(imports)
    assert all(below(drawn, name) == below(imports, name) for name in imports)
    rows = architecture.levels(drawn)
    level = {name: number for number, row in enumerate(rows) for name in row}
    assert level.keys() == imports.keys()
    assert all(level[low] < level[high] for high, its in drawn.items() for low in its)


def test_a_circle_is_named():
    with pytest.raises(architecture.CircleError, match="these import each other: a, b"):
        architecture.reduced({"a": ["b"], "b": ["a"], "c": []})


def test_a_new_folder_gets_a_row():
    page = "### `emu`: a layer\n\n| folder | what | imports |\n| - | - | - |\n| `a` | one line | |\n\nText.\n"
    made = architecture.with_imports(page, {"emu": {"a": {"b"}, "b": set()}})
    [layer] = architecture.layers(made)
    assert [(one.name, one.text, one.imports) for one in layer.folders] == [("a", "one line", ("b",)), ("b", "?", ())]
    assert made.endswith("\n\nText.\n")


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_a_name_of_the_page_is_in_its_file(name, file):
    assert re.search(rf"\b(?:def|class) {name}\b", (ROOT / file).read_text("utf-8"))


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_the_page_is_there(file):
    assert (ROOT / file).exists()
