"""A source line is that of the last row of an address in the line table, as addr2line has it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.support.some import some
from trapline.lab.step.names import line_table
from trapline.support.targets import find_file

ADDR2LINE = shutil.which("addr2line")


@pytest.mark.skipif(ADDR2LINE is None, reason="addr2line is not installed")
@pytest.mark.parametrize("isa", ISAS)
def test_lines_are_those_of_addr2line(isa):
    path = Path(find_file("testbins:kernel", ISAS[isa]))
    table = line_table(path)
    addresses = sorted({row.address for row in table._rows})[::3]
    told = subprocess.run(
        [ADDR2LINE, "-e", path], input="\n".join(map(hex, addresses)), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for address, text in zip(some(addresses), told, strict=True):
        found = table.line(address)
        file, _, line = text.split(" (")[0].rpartition(":")
        if found is None:
            assert line in {"0", "?"}, hex(address)
        else:
            assert (Path(found.file).name, str(found.line)) == (Path(file).name, line), hex(address)


def test_the_last_row_of_an_address_is_its_line():
    several = 0
    for isa in ISAS:
        table = line_table(Path(find_file("testbins:kernel", ISAS[isa])))
        addresses = [row.address for row in table._rows if not row.end]
        several += len(addresses) - len(set(addresses))
    assert not several, "a row that another one replaces is kept"
