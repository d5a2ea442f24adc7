"""docs/how-a-probe-fires.md names existing functions, and counts instructions as `step` does."""

import re
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.support.some import some

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-a-probe-fires.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`([\w.]+)`\s\(`([\w/.]+)`\)", PAGE)))
FILES = sorted(set(re.findall(r"`((?:emu|providers|trapline|testbins|docs)/[\w/.<>]+)`", PAGE)))


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_a_function_of_the_page_is_in_its_file(name, file):
    text = (ROOT / file).read_text("utf-8")
    for part in some(name.split(".")):
        assert re.search(rf"\b(?:def|class) {part}\b|^define .*@{part}\(", text, re.MULTILINE), part


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_the_page_is_there(file):
    for isa in some(ISAS if "<isa>" in file else [""]):
        assert (ROOT / file.replace("<isa>", isa)).exists()


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_the_guest_path_costs_what_the_page_says(isa):
    row = re.search(rf"^\| {isa.title} +\| (\d+) instructions +\| (\d+) instructions", PAGE, re.MULTILINE)
    for name, told in zip(("entry", "return"), row.groups(), strict=True):
        probe = f"fbt::sys_getpid:{name}"
        shown = run_trapline(["step", "--isa", isa.name, "--trap", "guest", "-n", probe, "-c", "getpid 1"]).stdout
        counted = [int(one) for one in re.findall(r"\((\d+) guest instructions?\)", shown)]
        assert sum(counted) == int(told)
