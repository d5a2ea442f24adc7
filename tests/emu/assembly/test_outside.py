"""llvm-mc and GNU as assemble what keystone lacks, and each result is disassembled."""

import pytest

from emu.assembly import AssemblyError, assemble, outside
from emu.assembly.assembler import language
from emu.assembly.keystone_engine import available
from emu.isa import ISAS

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")
# Instructions of both assemblers; the first of each ISA is also tried through the whole assembler.
LACKING = {
    "aarch64": ["ld1w {z0.s}, p0/z, [x0]", "addg x0, x1, #16, #1", "fcadd v1.8h, v15.8h, v2.8h, #90"],
    "x86_64": ["wrssq [rax], rbx", "vpternlogd zmm0 {k1}, zmm1, zmm2, 5", "vpdpbusd zmm0, zmm1, [rip + 8]"],
    "i386": ["rdsspd eax", "vpopcntd zmm0, zmm1"],
}


def assemblers(isa):
    found = [one for one in language(ISAS[isa]).outside if outside.installed(one)]
    if not found:
        pytest.skip("neither llvm-mc nor GNU as is installed")
    return found


@pytest.mark.parametrize("isa", LACKING)
def test_what_keystone_lacks_is_assembled_and_both_assemblers_agree(isa):
    found = assemblers(isa)
    for text in LACKING[isa]:
        assert len({outside.assembled(one, text) for one in found}) == 1, text
    made = assemble(ISAS[isa], LACKING[isa][0])[0]
    assert made.code == outside.assembled(found[0], LACKING[isa][0])
    assert made.text.split()[0] == LACKING[isa][0].split()[0]


def test_what_keystone_encodes_wrongly_is_right_or_refused():
    assemblers("x86_64")
    assert assemble(ISAS["x86_64"], "mov eax, [eip+8]")[0].code.hex() == "678b0508000000"
    with pytest.raises(AssemblyError, match="keystone makes b02c of it"):
        assemble(ISAS["x86_64"], "mov al, 300")


def test_an_address_for_a_linker_is_not_taken():
    found = assemblers("x86_64")
    assert outside.assembled(found[0], "jmp elsewhere") is None
    assert outside.assembled(found[0], "no such instruction") is None


def test_where_no_assembler_is_installed_the_error_names_one(monkeypatch):
    monkeypatch.setattr("emu.assembly.outside.shutil.which", lambda _name: None)
    outside.assembled.cache_clear()
    with pytest.raises(AssemblyError) as error:
        assemble(ISAS["aarch64"], "ptrue p0.s")
    outside.assembled.cache_clear()
    message = str(error.value)
    assert (
        "the assembler of AArch64 lacks this instruction: install llvm-mc (package llvm), or give its bytes" in message
    )
