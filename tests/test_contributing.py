"""CONTRIBUTING.md names files and commands that are there."""

import re
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.support.some import some

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TOP = "emu|providers|trapline|tests|testbins|benchmarks|docs"
FILES = sorted(set(re.findall(rf"`((?:{TOP})/[\w/.<>-]+)`", PAGE)) | set(re.findall(r"pytest (\S+)", PAGE)))
ROWS = re.findall(
    r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE.split("## Where to begin")[1].split("###")[0], re.MULTILINE
)


def test_the_table_has_every_kind_of_change():
    assert len(ROWS) > 20


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_the_page_is_there(file):
    for isa in some(ISAS if "<isa>" in file else [""]):
        assert (ROOT / file.replace("<isa>", isa)).exists()


def test_a_target_of_the_page_is_there():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"\bmake ([a-z-]+)", PAGE)) - {"is"}  # "make is enough"
    assert "test" in targets
    assert {name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)} == set()
