"""The user's compiled kprobes against a CPU (testbins/objects/kprobes.c)."""

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.kernels.linux_kprobes import LinuxKprobesGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request

_EVERY_ISA = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


def _check(isa, name, function):
    request = Request(Image(built(isa) / "kernel"), function, states=3)
    return check_objects([built(isa) / "objects" / name], LinuxKprobesGlue, request, isa)


@_EVERY_ISA
def test_simulated_jumps_and_copies_do_as_the_cpu(isa):
    report = _check(isa, "kprobes.o", "sys_getgid")
    assert report.same, as_text(report)
    assert report.counts["executed"] >= 4


@_EVERY_ISA
def test_a_wrong_pc_after_a_copy_is_found(isa):
    report = _check(isa, "kprobes-buggy.o", "sys_getgid")
    assert any(one.kind == "displaced" and f"{isa.registers.pc} is 0x" in one.what for one in report.differences)
