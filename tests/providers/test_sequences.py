"""What is between a load-exclusive and its store is decided by control flow, for every provider."""

import pytest

from emu.assembly import assemble
from emu.displaced.decision import Code, Refused
from emu.isa import ISAS
from providers import fasttrap, kinst, uprobes
from providers.fidelity import Fidelity
from providers.sequences import REACH

# The way out of the loop follows the load, and the store is behind a return.
FAR_STORE = {
    "aarch64": ("ldxr x0, [x1]; cmp x0, x2; b.eq store; mov x3, #1; ret; store: add x4, x4, #1; stxr w5, x4, [x1]; "
                "cbnz w5, again; mov x6, #2; ret"),
    "riscv64": ("lr.d a0, (a1); addi t0, t0, 1; beq a0, a2, store; li a3, 1; ret; store: addi a4, a4, 1; "
                "sc.d a5, a4, (a1); bnez a5, again; li a6, 2; ret"),
}  # fmt: skip
# The numbers of the instructions of `FAR_STORE`, the first of which is before the load.
BETWEEN = {2, 3, 6}
EXCLUSIVE = {1, 7}
TREATS = {
    "pid": lambda isa, code: fasttrap.PORTS[isa].treat(code, Fidelity.EXACT),
    "uprobe": lambda isa, code: uprobes.PORTS[isa].treat(code, Fidelity.EXACT),
    "kinst": lambda isa, code: kinst.PORTS[isa].treat(code),
}


def refused(isa, provider, text):
    one = assemble(ISAS[isa], text, 0x10000)
    body = b"".join(each.code for each in one)
    found = set()
    for number, each in enumerate(one):
        code = Code.at(body, each.address - 0x10000, each.address, longest=4, around=REACH)
        if isinstance(TREATS[provider](isa, code), Refused):
            found.add(number)
    return found


@pytest.mark.parametrize("provider", TREATS)
@pytest.mark.parametrize("isa", FAR_STORE)
def test_the_way_out_has_a_probe_and_the_way_to_the_store_has_none(isa, provider):
    assert refused(isa, provider, f"nop; again: {FAR_STORE[isa]}") == BETWEEN | EXCLUSIVE


@pytest.mark.parametrize("provider", TREATS)
def test_clrex_ends_a_sequence(provider):
    text = "again: ldxr x0, [x1]; cbz x0, out; stxr w5, x4, [x1]; cbnz w5, again; out: clrex; add x1, x1, #1; ret"
    # uprobes refuse clrex, as every system instruction that Linux does not know to be harmless.
    assert refused("aarch64", provider, text) - {4} == {0, 1, 2}


@pytest.mark.parametrize("provider", TREATS)
def test_a_path_out_of_the_known_code_may_lead_to_the_store(provider):
    assert refused("riscv64", provider, "lr.d a0, (a1); addi a2, a2, 1") == {0, 1}
    assert refused("riscv64", provider, "lr.d a0, (a1); addi a2, a2, 1; ret") == {0}


TAIL_CALL = {
    "aarch64": "again: ldxr x0, [x1]; cbz x0, out; stxr w5, x4, [x1]; cbnz w5, again; out: add x1, x1, #1; b 0x18000",
    "riscv64": "again: lr.d a0, (a1); beqz a0, out; sc.d a5, a4, (a1); bnez a5, again; out: addi a1, a1, 1; j 0x18000",
}


@pytest.mark.parametrize("provider", TREATS)
@pytest.mark.parametrize("isa", TAIL_CALL)
def test_a_call_in_place_of_a_return_does_not_lead_to_the_store(isa, provider):
    assert refused(isa, provider, TAIL_CALL[isa]) & {4, 5} == set()


def test_linux_steps_between_them():
    body = b"".join(one.code for one in assemble(ISAS["riscv64"], f"again: {FAR_STORE['riscv64']}", 0))
    code = Code.at(body, 4, 4, longest=4, around=REACH)
    assert not isinstance(uprobes.PORTS["riscv64"].treat(code, Fidelity.LINUX), Refused)
    assert uprobes.PORTS["riscv64"].treat(code, Fidelity.EXACT).rule.errno
