"""`trapline sites` for user programs: the decision of every instruction."""

import json

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.lab.sites.fbt import SitesError
from trapline.lab.sites.instructions import user_sites


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("provider", ["pid", "uprobe"])
def test_every_byte_of_a_function_is_accounted_for(isa, provider):
    path = images.linux(isa, "zoo")
    found = user_sites(path, function="fib", provider=provider)
    assert sum(len(one.code) // 2 for one in found) == max(one.offset + len(one.code) // 2 for one in found)
    assert found[0].probes.split()[0] == "entry"
    assert any("return" in one.probes for one in found)
    assert {one.what for one in found} <= {"emulated", "simulated", "out of line", "single-stepped"}


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_a_sequence_of_exclusives_is_refused_with_the_reason(isa):
    found = user_sites(
        images.linux(ISAS[isa], "zoo"), function={"aarch64": "asm_exclusive", "riscv64": "asm_reserved"}[isa]
    )
    refused = [one for one in found if one.what == "refused"]
    assert len(refused) >= 2
    assert all("exclusive" in one.how or "sc" in one.how for one in refused)


def test_a_misspelt_function_gets_the_nearest_name():
    with pytest.raises(SitesError, match="did you mean 'ackermann'"):
        user_sites(images.linux(ISAS["x86_64"], "zoo"), function="ackerman")


def test_the_command_prints_a_table_or_json():
    path = str(images.linux(ISAS["riscv64"], "zoo"))
    table = run_trapline(["sites", "--provider", "pid", "--function", "fib", path])
    assert table.returncode == 0
    assert "JAL: ra = pc+4" in table.stdout
    data = json.loads(run_trapline(["sites", "--provider", "uprobe", "--function", "fib", "--json", "-", path]).stdout)
    assert data[0]["function"] == "fib"
