"""illumos' FBT as objects: a driver, its module, traps and signals (testbins/objects/illumos_fbt.c)."""

import pytest

from emu.elf.image import Image
from emu.elf.symbols import Binding
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.build import BuildError, build, compiler
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.kernels.illumos_fbt import IllumosFbtGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request, RequestError

_X86 = pytest.mark.parametrize("isa", [ISAS["x86_64"], ISAS["i386"]], ids=lambda isa: isa.name)
# Functions with one entry and one return.
_SMALL = frozenset({
    "sys_getgid", "sys_close", "sys_getdirentries", "sys_lseek", "sys_umask", "sys_getuid", "sys_fork", "sys_vfork",
    "sys_mkdir", "sys_access",
})  # fmt: skip
_OBJECTS = ("illumos_fbt.o", "illumos_trap.o")

_DRIVER = """
#include <sys/modctl.h>
#include <sys/dtrace.h>
static int attach(dev_info_t *device, ddi_attach_cmd_t command) { return command == DDI_ATTACH ? DDI_FAILURE : 0; }
static struct dev_ops operations = {DEVO_REV, 0, 0, nulldev, nulldev, attach};
static struct modldrv driver = {&mod_driverops, "none", &operations};
static struct modlinkage linkage = {MODREV_1, {&driver, NULL}};
int _init(void) { return mod_install(&linkage); }
"""


def _check(isa, objects=_OBJECTS, glue=IllumosFbtGlue, function="sys_access", kernel=None):
    paths = [built(isa) / "objects" / name for name in objects]
    return check_objects(paths, glue, Request(kernel or Image(built(isa) / "kernel"), function), isa)


@_X86
def test_a_driver_is_attached_and_its_functions_do_what_ours_do(isa):
    report = _check(isa)
    assert report.same, as_text(report)
    assert report.counts["sites in both"] == report.counts["sites patched"] == report.counts["firings"] == 2
    assert report.counts["displaced instructions"] == 4
    assert next(one for one in report.coverage if one.file == "trap.S").percent > 95


@_X86
def test_mistakes_in_the_driver_the_traps_and_the_signals_are_found(isa):
    report = _check(isa, [name.replace(".o", "-buggy.o") for name in _OBJECTS])
    assert {one.kind for one in report.differences} == {"only ours", "only theirs", "displaced"}
    (failure,) = report.failures
    assert failure.subject == "dtrace_safe_defer_signal"
    assert "with the pc at the copies+2: the pc is 0x100003, not 0x200016" in failure.what


def test_weak_functions_and_illumos_names_get_no_probes_and_freebsds_names_do():
    isa = ISAS["i386"]
    kernel = Image(built(isa) / "kernel")
    calls = iter([symbol for symbol in kernel.functions if symbol.name in _SMALL])
    probed = [next(calls)._replace(name=name) for name in ("sys_access", "kdb_enter", "owner_mtx", "dtrace_safe_call")]
    refused = [next(calls)._replace(name=name) for name in ("_init", "_fini", "kdi_x", "x_kdi_y", "dtrace_call")]
    weak = next(calls)._replace(binding=Binding.WEAK)
    kernel.__dict__["symbols"] = (*probed, *refused, weak)
    report = _check(isa, function=None, kernel=kernel)
    assert report.same, as_text(report)
    assert report.counts["functions"] == 10
    assert report.counts["sites in both"] == 2 * len(probed)


def test_two_names_of_a_function_are_two_records_of_which_the_newest_fires():
    isa = ISAS["i386"]
    kernel = Image(built(isa) / "kernel")
    one = next(symbol for symbol in kernel.functions if symbol.name == "sys_access")
    kernel.__dict__["symbols"] = (one, one._replace(name="other"))
    report = _check(isa, function=None, kernel=kernel)
    assert report.same, as_text(report)
    assert report.counts["firings"] == 4


def test_arguments_are_compared():
    class Wrong(IllumosFbtGlue):
        first_argument = 2

    (found,) = _check(ISAS["i386"], glue=Wrong).differences
    assert found.kind == "arguments"
    assert "their handler fires 0x" in found.what


@_X86
def test_the_pack_compiles_a_driver_and_one_that_does_not_attach_is_one_line(isa, tmp_path):
    try:
        compiler(isa)
    except BuildError as error:
        pytest.skip(str(error))
    source = tmp_path / "uts" / "intel" / "dtrace" / "fbt.c"
    source.parent.mkdir(parents=True)
    source.write_text(_DRIVER)
    (built_object,) = build(IllumosFbtGlue.recipe, isa, tmp_path, tmp_path / "out")
    with pytest.raises(RequestError, match=r"fbt\.o: the driver of _init does not attach or registers no provider"):
        check_objects([built_object.object], IllumosFbtGlue, Request(Image(built(isa) / "kernel")), isa)


def test_there_is_none_on_other_isas(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no compiler either: to install one would be in vain
    with pytest.raises(BuildError, match="this glue has no sources for aarch64"):
        list(build(IllumosFbtGlue.recipe, ISAS["aarch64"], tmp_path, tmp_path))
