"""The user's compiled decoder of uprobes against the package's rules (testbins/objects/decoder.c)."""

import pytest

from emu.elf import Image
from emu.guest.kernel.images import built
from emu.isa import ISAS
from trapline.lab.objects.checking import check_objects
from trapline.lab.objects.linux_uprobes import _STRIDE, LinuxUprobesGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request

# Those for which Linux has a decoder of this form; x86's is another.
_ISAS = [one for one in ISAS.values() if one.registers.link]
_EVERY_ISA = pytest.mark.parametrize("isa", _ISAS, ids=lambda isa: isa.name)
_SAMPLE = 600


def _check(isa, name, **options):
    request = Request(sample=_SAMPLE, states=4, **options)
    return check_objects([built(isa) / "objects" / name], LinuxUprobesGlue, request, isa)


@_EVERY_ISA
def test_decisions_differ_where_the_decoder_knows_less(isa):
    report = _check(isa, "decoder.o")
    assert report.counts["encodings"] == _SAMPLE
    assert report.counts["simulated"] >= 5
    assert {one.kind for one in report.differences} == {"decoded"}  # what is simulated does as the CPU
    assert all("executed as copies by theirs" in one.what for one in report.differences)
    assert not report.failures
    assert not report.accesses


@_EVERY_ISA
def test_a_wrong_simulation_is_found_in_a_state(isa):
    report = _check(isa, "decoder-buggy.o")
    found = [one for one in report.differences if one.kind == "simulated"]
    assert found, as_text(report)
    assert all("pc is 0x" in one.what and "on the CPU 0x" in one.what for one in found)


@_EVERY_ISA
def test_a_read_behind_the_instruction_is_found(isa):
    # The encoding of all ones is this one in the order of the sweep.
    first = pow(_STRIDE, -1, 1 << 32) * 0xFFFF_FFFF % (1 << 32)
    request = Request(sample=1, first=first)
    report = check_objects([built(isa) / "objects" / "decoder-buggy.o"], LinuxUprobesGlue, request, isa)
    assert [one.what for one in report.accesses] == ["read out of bounds"]
    assert report.accesses[0].subject == "ffffffff"


def test_a_sweep_says_how_it_continues():
    report = _check(_ISAS[0], "decoder.o", first=1000)
    assert any(f"--first {1000 + _SAMPLE} continues" in one for one in report.omitted)


@_EVERY_ISA
def test_the_instructions_of_a_program_are_asked(isa):
    request = Request(Image(built(isa) / "linux" / "tiny"), states=2)
    report = check_objects([built(isa) / "objects" / "decoder.o"], LinuxUprobesGlue, request, isa)
    assert report.counts["encodings"] > 10
