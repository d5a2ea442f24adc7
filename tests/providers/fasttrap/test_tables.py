"""Fasttrap's tables: the decision of every instruction, compared with the CPU and with capstone."""

import random

import capstone
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.displaced.decision import Code, Emulated, OutOfLine, Refused
from emu.displaced.plans import Check, Compare, Sum
from emu.isa import AARCH64, ISAS, RISCV64, X86_64
from emu.isa.riscv64.instruction import instruction_length
from emu.probe.execute_plan import holds
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from tests.support.some import some

ADDRESS = 0x10000


def treat(isa, code, fidelity=Fidelity.EXACT, before=b""):
    return PORTS[isa.name].treat(Code(code, ADDRESS, before), fidelity)


def x86(text, fidelity=Fidelity.EXACT):
    return treat(X86_64, bytes.fromhex(text) + b"\x90" * 15, fidelity)


@pytest.mark.parametrize(
    ("code", "kind", "length"),
    [
        ("7405", "JCC", 2),
        ("0f8f00000001", "JCC", 6),
        ("e2fe", "LOOP", 2),
        ("67e3fe", "JCXZ", 3),
        ("eb00", "JMP", 2),
        ("e900000000", "JMP", 5),
        ("ff25aabbccdd", "JMP, indirect", 6),
        ("41ffe3", "JMP, indirect", 3),
        ("e800000000", "CALL", 5),
        ("ff5008", "CALL, indirect", 3),
        ("64ff1425 10000000", "CALL, indirect", 8),
        ("c3", "RET", 1),
        ("f3c3", "RET", 2),
        ("c21000", "RET16", 3),
        ("55", "PUSHL_EBP", 1),
        ("90", "NOP", 1),
        ("f390", "NOP", 2),
    ],
)
def test_what_transfers_control_on_x86_is_emulated(code, kind, length):
    found = x86(code)
    assert isinstance(found, Emulated)
    assert (found.rule.name, found.length) == (kind, length)


@pytest.mark.parametrize(
    "code",
    [
        "cc", "cd80", "2e3e8b00", "06", "c7f800000000",
        "ff18", "48ff18",  # far calls
        "66e800000000", "66c3", "660f8400000000", "66ff10",  # Intel's and AMD's CPUs take these for different things
    ],
)  # fmt: skip
def test_what_cannot_be_displaced_on_x86_is_refused_with_a_reason(code):
    found = x86(code)
    assert isinstance(found, Refused)
    assert found.rule.why
    assert found.rule.source


@pytest.mark.parametrize("code", ["67e200", "67ff24", "67ff14", "67ff5400", "67ff26ffff", "66e200", "9a000000003300"])
def test_what_has_16_bits_or_a_segment_on_i386_is_refused(code):
    for after in (b"", bytes(12), b"\xff" * 12):
        found = treat(ISAS["i386"], bytes.fromhex(code) + after)
        assert isinstance(found, Refused)
        assert found.rule.name != "MALFORMED"


@pytest.mark.parametrize(
    ("after", "address"), [("", Sum("%1", "eax", "eax")), ("8d00010000", Sum("%1", "", "ecx", 2, 256))]
)
def test_freebsd_reads_on_where_a_16_bit_address_ends(after, address):
    # jmp [si], which it takes for a jump by SIB, 3 bytes long
    found = treat(ISAS["i386"], bytes.fromhex("67ff24" + after), Fidelity.FREEBSD)
    assert isinstance(found, Emulated)
    assert found.length == 3
    assert found.plan.operations[0] == address


@pytest.mark.parametrize(
    ("code", "kind", "length"),
    [("66480f1f00", "", 5), ("6648e800000000", "CALL", 7), ("4066e900000000", "", 0), ("4140e900000000", "JMP", 7)],
)
def test_prefixes_before_a_branch_count_as_they_do_for_a_cpu(code, kind, length):
    # REX.W makes 66 void; a REX that another prefix follows is void itself.
    found = x86(code)
    if kind:
        assert isinstance(found, Emulated)
        assert (found.rule.name, found.length) == (kind, length)
    else:
        assert isinstance(found, OutOfLine if length else Refused)


def test_an_operand_relative_to_rip_is_seen_behind_a_void_rex():
    found = x86("4866 8b05 00000000")  # mov ax,[rip+0]
    assert isinstance(found, OutOfLine)
    assert found.scratch == "rsi"
    assert found.code == bytes.fromhex("48668b8600000000")


@pytest.mark.parametrize("code", ["0f77", "c5f877", "0f0b", "0fff", "0fb9", "f30f2005"])
def test_what_only_looks_like_a_modrm_byte_is_none(code):
    # emms, vzeroupper and ud2 have none; of mov rbp,cr0 rm is a register whatever mod says.
    found = x86(code)
    assert isinstance(found, OutOfLine)
    assert not found.scratch


@pytest.mark.parametrize("code", ["4155", "4190", "50", "0f05", "f0480fb10a", "f3a4", "4889e5"])
def test_everything_else_on_x86_runs_out_of_line_as_it_is(code):
    found = x86(code)
    assert isinstance(found, OutOfLine)
    assert found.code == bytes.fromhex(code)


@given(st.binary(min_size=1, max_size=15), st.sampled_from(list(Fidelity)))
@settings(max_examples=400)
def test_an_operand_relative_to_rip_goes_by_a_register(data, fidelity):
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    original = next(decoder.disasm(data, ADDRESS, 1), None)
    found = treat(X86_64, data, fidelity)
    if original is None or (isinstance(found, Refused) and found.rule.name == "UNKNOWN"):
        return
    relative = any(
        op.type == capstone.CS_OP_MEM and original.reg_name(op.mem.base) == "rip" for op in original.operands
    )
    if isinstance(found, OutOfLine):
        copy = next(decoder.disasm(found.code, ADDRESS, 1))
        assert (copy.mnemonic, copy.size) == (original.mnemonic, original.size)
        # FreeBSD takes moves of control and debug registers for relative, whose mod does not count.
        moves = original.opcode[0] == 0x0F and original.opcode[1] in range(0x20, 0x24)
        assert bool(found.scratch) is relative or (fidelity is Fidelity.FREEBSD and moves)
        if relative:
            memory = next(op.mem for op in copy.operands if op.type == capstone.CS_OP_MEM)
            assert copy.reg_name(memory.base) == found.scratch
            if fidelity is not Fidelity.FREEBSD:
                used = {original.reg_name(number) for number in original.regs_access()[0] + original.regs_access()[1]}
                family = {found.scratch, "e" + found.scratch[1:], found.scratch[1:], found.scratch[1:] + "l"}
                assert not used & family


@pytest.mark.parametrize("code", ["4840c3", "4866ebfe", "404874fe", "4048cc", "48c5f877", "41488b0500000000"])
def test_freebsds_disassembler_refuses_what_is_no_opcode_behind_rex(code):
    assert x86(code, Fidelity.FREEBSD).rule.name == "UNKNOWN"
    assert isinstance(x86(code, Fidelity.FREEBSD), Refused)
    assert x86(code).rule.name != "MALFORMED"


def test_freebsds_register_is_one_that_cmpxchg_uses_unnamed():
    cmpxchg = "0fb11500000000"  # cmpxchg [rip+0],edx
    assert x86(cmpxchg, Fidelity.FREEBSD).scratch == "rax"
    # mov %cr4, %rbp: its ModRM byte names registers, whatever mod is.
    move = x86("0f20 25", Fidelity.FREEBSD)
    assert (move.scratch, move.code) == ("rax", bytes.fromhex("0f20a0"))
    assert x86("0f20 25").scratch == ""
    assert x86(cmpxchg).scratch == "rsi"


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (0xA9BF7BFD, "STANDARD_FUNCTION_ENTRY"), (0x1C000040, "LDR_S_PC_REL"), (0x18000040, "LDR_W_PC_REL"),
        (0x5C000040, "LDR_D_PC_REL"), (0x58000040, "LDR_X_PC_REL"), (0x9C000040, "LDR_Q_PC_REL"),
        (0x98000040, "LDRSW_PC_REL"), (0x54000041, "B_COND"), (0x35000041, "CBNZ_W"), (0xB5000041, "CBNZ_X"),
        (0x34000041, "CBZ_W"), (0xB4000041, "CBZ_X"), (0x37000041, "TBNZ"), (0xB6000041, "TBZ"), (0x14000010, "B"),
        (0x94000010, "BL"), (0xD63F0220, "BLR"), (0xD61F0220, "BR"), (0xD65F03C0, "RET"), (0x90000000, "ADRP"),
        (0x10000000, "ADR"), (0xD8000040, "PRFM_PC_REL"), (0xD503201F, "NOP"),
    ],
)  # fmt: skip
def test_what_names_the_pc_on_aarch64_is_emulated(word, kind):
    found = treat(AARCH64, word.to_bytes(4, "little"))
    assert isinstance(found, Emulated)
    assert found.rule.name == kind


@pytest.mark.parametrize("word", [
    0xC85FFC41, 0xC800FC41, 0xD4200000, 0xD65F0BFF, 0xD71F0811, 0xD73F0811, 0xD63F081F, 0x54000050,
])  # fmt: skip
def test_what_cannot_be_displaced_on_aarch64_is_refused(word):
    assert isinstance(treat(AARCH64, word.to_bytes(4, "little")), Refused)


@pytest.mark.parametrize("word", [0x08DFFC41, 0x889FFC41, 0xF9400000, 0xD4000001, 0x4E080C20])
def test_everything_else_on_aarch64_runs_out_of_line(word):
    assert isinstance(treat(AARCH64, word.to_bytes(4, "little")), OutOfLine)


def test_xnus_mask_leaves_branches_through_high_registers_to_chance():
    br_x17 = (0xD61F0220).to_bytes(4, "little")
    assert isinstance(treat(AARCH64, br_x17, Fidelity.FREEBSD), OutOfLine)
    assert isinstance(treat(AARCH64, br_x17), Emulated)


LR_LOOP = {
    AARCH64: [0xC85FFC41, 0x91000421, 0xC800FC41, 0x35FFFFA0],  # ldaxr; add; stlxr; cbnz
    RISCV64: [0x100525AF, 0x00158593, 0x18B526AF],  # lr.w; addi; sc.w
}


@pytest.mark.parametrize("isa", [AARCH64, RISCV64], ids=lambda isa: isa.name)
def test_nothing_between_a_load_exclusive_and_its_store_is_displaced(isa):
    words = [word.to_bytes(4, "little") for word in LR_LOOP[isa]]
    inside = treat(isa, words[1], before=words[0])
    assert isinstance(inside, Refused)
    assert isinstance(treat(isa, words[1], before=b"".join(words[:3])), OutOfLine)
    assert isinstance(treat(isa, words[0]), Refused)
    assert isinstance(treat(isa, words[2], before=b"".join(words[:2])), Refused)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_capstone_calls_a_jump_on_riscv_is_not_run_out_of_line(seed):
    decoder = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
    numbers = random.Random(seed)  # noqa: S311  not for secrets
    jumps = {"jal", "jalr", "j", "jr", "beq", "bne", "blt", "bge", "bltu", "bgeu", "auipc", "ret", "c.j", "c.jr",
             "c.jalr", "c.beqz", "c.bnez", "beqz", "bnez", "bltz", "bgez", "blez", "bgtz"}  # fmt: skip
    checked = 0
    for _ in range(20_000):
        code = numbers.randbytes(4)
        insn = next(decoder.disasm_lite(code, ADDRESS, 1), None)
        if insn is not None and insn[2] in jumps:
            found = treat(RISCV64, code)
            assert isinstance(found, Emulated), (code.hex(), insn)
            assert found.length == instruction_length(code)
            checked += 1
    assert checked > 500


@given(
    st.binary(max_size=16),
    st.sampled_from(list(ISAS.values())),
    st.sampled_from(list(Fidelity)),
    st.binary(max_size=64),
)
@settings(max_examples=500)
def test_any_bytes_are_treated_somehow(code, isa, fidelity, before):
    found = treat(isa, code, fidelity, before)
    if not isinstance(found, Refused):
        patch = PORTS[isa.name].breakpoint(found.length)
        assert len(patch) <= found.length <= len(code)


@pytest.mark.parametrize("number", range(16))
def test_conditions_are_those_of_capstones_names(number):
    """A pair of codes asks one question and its opposite, whatever the flags."""
    for isa, bits in ((X86_64, (0x1, 0x4, 0x40, 0x80, 0x800)), (AARCH64, (1 << 28, 1 << 29, 1 << 30, 1 << 31))):
        for combination in some(range(1 << len(bits))):
            flags = sum(bit for place, bit in enumerate(bits) if combination >> place & 1)
            this = holds(Check(Compare.FLAGS, right=number), isa, flags, number)
            other = holds(Check(Compare.FLAGS, right=number ^ 1), isa, flags, number ^ 1)
            assert this is not other or (isa is AARCH64 and number >= 14)


def test_return_sites_are_returns_and_branches_out():
    code = bytes.fromhex("55 4889e5 7402 c3 90 ebf4 e97f000000 c20800 0f85f8ffffff".replace(" ", ""))
    sites = list(PORTS["x86_64"].returns(code, ADDRESS, Fidelity.EXACT))
    ends = {6: "ret", 8: "jmp to before the function", 10: "jmp out", 15: "ret 8"}
    assert sites == list(ends)
    words = [0xA9BF7BFD, 0x54000040, 0xD65F03C0, 0x17FFFF00, 0x14000001, 0xB5000800]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    assert list(PORTS["aarch64"].returns(code, ADDRESS, Fidelity.EXACT)) == [8, 12, 20]
    code = bytes.fromhex("1141828001a06f f0 9f ff".replace(" ", "") + "6780000019c1")
    assert list(PORTS["riscv64"].returns(code, ADDRESS, Fidelity.EXACT)) == [2, 6, 10, 14]
