"""The user's compiled fasttrap against the package's rules (exhibits/loop_count.c in testbins/objects)."""

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.build import BuildError, build, compiler
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.kernels.fasttrap import FasttrapGlue, IllumosFasttrapGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request

# A source that uses what only one of the systems has.
_SOURCES = {
    FasttrapGlue: """
#include <sys/fasttrap_impl.h>
#include <machine/reg.h>
uintptr_t
pc(struct trapframe *frame)
{
	struct reg registers;
	fill_frame_regs(frame, &registers);
	return fasttrap_fulword((void *)registers.r_cs);
}
""",
    IllumosFasttrapGlue: """
#include <sys/fasttrap_impl.h>
#include <sys/privregs.h>
int
pc(struct regs *registers)
{
	uintptr_t value;
	return fasttrap_fulword((void *)registers->r_pc, &value) + registers->r_sp + registers->r_ps;
}
""",
}
# Those that FreeBSD has fasttrap for.
_ISAS = pytest.mark.parametrize(
    "isa", [one for one in ISAS.values() if not one.registers.link], ids=lambda isa: isa.name
)


@_ISAS
@pytest.mark.parametrize(
    ("glue", "name"), [(FasttrapGlue, "exhibits/loop_count.o"), (IllumosFasttrapGlue, "illumos_fasttrap.o")]
)
def test_copies_in_the_scratch_space_do_as_the_cpu(isa, glue, name):
    request = Request(Image(built(isa) / "kernel"), "sys_getgid", states=6)
    report = check_objects([built(isa) / "objects" / name], glue, request, isa)
    assert report.counts["executed"] >= 5
    # It emulates loop only, so it differs about the others that our rules emulate.
    assert {one.kind for one in report.differences} == {"decoded"}, as_text(report)
    assert all("executed as copies by theirs, simulated by ours" in one.what for one in report.differences)
    assert not report.failures
    assert not report.accesses


def test_an_isa_that_the_system_has_no_such_code_for_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no compiler either: to install one would be in vain
    assert FasttrapGlue.recipe is not None
    with pytest.raises(BuildError, match="no sources for riscv64: its system has no such code there"):
        list(build(FasttrapGlue.recipe, ISAS["riscv64"], tmp_path, tmp_path))


@_ISAS
@pytest.mark.parametrize("glue", list(_SOURCES))
def test_each_recipe_compiles_with_its_systems_headers(isa, glue, tmp_path):
    source = tmp_path / "uts/intel/dtrace/fasttrap_isa.c"
    source.parent.mkdir(parents=True)
    source.write_text(_SOURCES[glue])
    try:
        compiler(isa)
    except BuildError as error:
        pytest.skip(str(error))
    (found,) = build(glue.recipe, isa, tmp_path, tmp_path / "out")
    assert found.object.exists()
