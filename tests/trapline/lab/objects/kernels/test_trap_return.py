"""The handler of x86 that is assembly and returns from the trap (testbins/objects/trap.S)."""

from dataclasses import replace

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from providers.fbt import PORTS
from trapline.lab.objects.build import BuildError, build, compiler
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.kernels.fbt_check import FbtGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request
from trapline.lab.objects.user_code import ObjectError

_X86 = pytest.mark.parametrize("isa", [ISAS["x86_64"], ISAS["i386"]], ids=lambda isa: isa.name)

_NUMBERS = """
#include <machine/asmacros.h>
#include <sys/cpuvar_defs.h>
#include <sys/dtrace.h>
#include "assym.inc"
	ENTRY(dtrace_invop_start)
	ALTENTRY(dtrace_invop_callsite)
	cmpl $DTRACE_INVOP_PUSHL_EBP, %eax
	hlt
#ifdef __x86_64__
	testb $SEL_RPL_MASK, TF_CS(%rsp)
#endif
	END(dtrace_invop_start)
"""


_CALLS = {"x86_64": 1, "i386": 0}


def _check(isa, name, *objects):
    folder = built(isa) / "objects"
    paths = [folder / "scanner.o", *objects, *([folder / name] if name else [])]
    return check_objects(paths, FbtGlue, Request(Image(built(isa) / "kernel"), "sys_access"), isa)


@_X86
def test_the_assembly_does_each_instruction_as_the_cpu(isa):
    report = _check(isa, "trap.o")
    assert report.same, as_text(report)
    assert report.counts["displaced instructions"] == 4 + _CALLS[isa.name]
    assert next(one for one in report.coverage if one.file == "trap.S").percent > 95


@pytest.mark.parametrize(
    ("isa", "wanted"),
    [
        (
            "x86_64",
            {
                "push rbp": "r11 is 0x5a",
                "ret": "rsp is 0x",
                "leave": "rsp is 0x",
                "nop": "r11 is 0x5a",
                "call": "r11 is",
            },
        ),
        ("i386", {"push ebp": "eip is 0x", "leave": "at iret, 0x20 before"}),
    ],
)
def test_the_mistakes_of_a_wrong_assembly_are_found(isa, wanted):
    found = {_name(one): one for one in _check(ISAS[isa], "trap-buggy.o").differences}
    assert set(found) == set(wanted)
    for instruction, text in wanted.items():
        assert text in found[instruction].what
        assert "[" not in found[instruction].what
        assert found[instruction].where.startswith("trap.S:")


def _name(difference):
    """Return the instruction, a call without its target."""
    text = difference.instruction
    return "call" if text.startswith("call") else text


@_X86
def test_the_whole_chain_from_the_trap_to_the_scanners_answer_is_the_users(isa):
    report = _check(isa, "trap.o", built(isa) / "objects" / "subr.o")
    assert report.same, as_text(report)
    assert report.counts["displaced instructions"] == 4
    missed = {one.file: set(one.missed) for one in report.coverage}
    assert not missed["subr.c"]


@_X86
def test_an_answer_that_the_assembly_does_not_know_is_a_difference(isa, monkeypatch):
    port = PORTS[isa.name]
    assembly = port.assembly._replace(answers=((77, b"\x90"),))
    monkeypatch.setitem(PORTS._rows, isa.name, replace(port, assembly=assembly))
    (found,) = _check(isa, "trap.o").differences
    assert found.what == ("their handler does not emulate it: dtrace_invop_start jumps to *dtrace_invop_calltrap_addr")


@_X86
def test_the_recipe_assembles_with_the_pack_and_an_assembly_without_iret_is_one_line(isa, tmp_path):
    try:
        compiler(isa)
    except BuildError as error:
        pytest.skip(str(error))
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "fbt_isa.c").write_text('#include <machine/frame.h>\n#include "fbt.h"\n')
    (sources / "dtrace_asm.S").write_text(_NUMBERS)
    objects = [one.object for one in build(FbtGlue.recipe, isa, sources, tmp_path / "out")]
    assert [one.name for one in objects] == ["fbt_isa.o", "dtrace_asm.o"]
    with pytest.raises(ObjectError, match=r"dtrace_asm\.o: dtrace_invop_start has no iret"):
        _check(isa, "", objects[1])
