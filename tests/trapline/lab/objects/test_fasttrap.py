"""The user's compiled fasttrap against the package's rules (testbins/objects/exhibits/loop_count.c)."""

import pytest

from emu.elf import Image
from emu.guest.kernel.images import built
from emu.isa import ISAS
from trapline.lab.objects.building import BuildError, build
from trapline.lab.objects.checking import check_objects
from trapline.lab.objects.fasttrap import FasttrapGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request

# Those that FreeBSD has fasttrap for.
_ISAS = pytest.mark.parametrize(
    "isa", [one for one in ISAS.values() if not one.registers.link], ids=lambda isa: isa.name
)


@_ISAS
def test_copies_in_the_scratch_space_do_as_the_cpu(isa):
    request = Request(Image(built(isa) / "kernel"), "sys_getgid", states=6)
    report = check_objects([built(isa) / "objects/exhibits/loop_count.o"], FasttrapGlue, request, isa)
    assert report.counts["executed"] >= 5
    # It emulates loop only, so it differs about the others that our rules emulate.
    assert {one.kind for one in report.differences} == {"decoded"}, as_text(report)
    assert all("executed as copies by theirs, simulated by ours" in one.what for one in report.differences)
    assert not report.failures
    assert not report.accesses


def test_an_isa_that_the_system_has_no_such_code_for_is_one_line(tmp_path):
    assert FasttrapGlue.recipe is not None
    with pytest.raises(BuildError, match="no sources for riscv64: its system has no such code there"):
        list(build(FasttrapGlue.recipe, ISAS["riscv64"], tmp_path, tmp_path))
