"""The facts from capstone's answers, compared with definitions and with the emulated CPU."""

import random

import capstone
import pytest
import unicorn
from unicorn import arm64_const, riscv_const

from emu.isa import AARCH64, ISAS, X86_64
from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, take_apart
from tests.support.some import some
from trapline.lab.check.encodings import Chunk, ports, x86
from trapline.lab.check.encodings.decoder import Facts, decoder
from trapline.lab.check.encodings.space import FORMS
from trapline.lab.check.encodings.tables import row_of, tables


def test_on_aarch64_relative_is_what_reads_otherwise_elsewhere():
    other = decoder("aarch64")
    met = set()
    for number in range(0, 1 << 32, (1 << 32) // 60_000 | 1):
        code = number.to_bytes(4, "little")
        if not other.decode(code, 0x1000):
            continue
        here, (name, _, facts) = other.text, other.facts(other.number, other.bits)
        other.decode(code, 0x8765_4000)
        assert (Facts.RELATIVE in facts) is (other.text != here), here
        met.add(name)
    assert {"adr", "adrp", "b", "bl", "cbz", "tbnz", "ldr", "prfm"} <= met


PAGES = (0x0010_0000, 0x0770_0000)
DATA = 0x0500_0000
MACHINES = {
    "aarch64": (
        (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM),
        [getattr(arm64_const, f"UC_ARM64_REG_X{number}") for number in range(29)],
        arm64_const.UC_ARM64_REG_PC,
    ),
    "riscv64": (
        (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64),
        [getattr(riscv_const, f"UC_RISCV_REG_X{number}") for number in range(1, 32)],
        riscv_const.UC_RISCV_REG_PC,
    ),
}


def machine(isa):
    engine = unicorn.Uc(*MACHINES[isa][0])
    if isa == "aarch64":
        engine.ctl_set_cpu_model(arm64_const.UC_CPU_ARM64_MAX)
    for page in PAGES:
        engine.mem_map(page, 0x1000)
    engine.mem_map(DATA, 0x10000)
    return engine


def step(engine, isa, word, address):
    """Return the error, or how far the pc went and what the registers are."""
    _, registers, pc = MACHINES[isa]
    for register in registers:
        engine.reg_write(register, DATA + 0x8000)
    engine.mem_write(address, word.to_bytes(4, "little"))
    engine.ctl_remove_cache(address, address + 4)
    try:
        engine.emu_start(address, address + 64, count=1)
    except unicorn.UcError as error:
        return error.errno
    return engine.reg_read(pc) - address, [engine.reg_read(register) for register in registers]


@pytest.mark.parametrize("isa", MACHINES)
def test_what_capstone_does_not_decode_faults_or_does_the_same_wherever_it_stands(isa):
    other, numbers, engine = decoder(isa), random.Random(isa), machine(isa)  # noqa: S311
    rows = tables(isa)["pid"]
    newer = {"aarch64": [0x74000000, 0x75000000, 0x5500001F, 0x5520001F, 0xD65F0BE0, 0xF380001F, 0xDAC1A3FE]}
    words = [*newer.get(isa, []), *(numbers.getrandbits(32) for _ in range(3000))]
    met = 0
    for word in words:
        # Among vector instructions there are words that make Unicorn abort; none of these knows the pc.
        if (isa == "aarch64" and word >> 25 & 7 == 7) or (isa == "riscv64" and word & 3 != 3):
            continue
        if other.decode(word.to_bytes(4, "little")) or rows[row_of(rows, word, 4)].name != "COMMON":
            continue
        first, second = (step(engine, isa, word, page) for page in PAGES)
        assert first == second, f"{word:#010x}"
        assert not isinstance(first, tuple) or first[0] == 4, f"{word:#010x}"
        met += 1
    assert met > 300


@pytest.mark.parametrize(
    ("isa", "unicorns", "mode", "stride"),
    [("x86_64", unicorn.UC_MODE_64, LONG_MODE, 347), ("i386", unicorn.UC_MODE_32, PROTECTED_MODE, 241)],
)
def test_on_x86_the_length_is_what_the_cpu_takes_it_for(isa, unicorns, mode, stride):
    size, data = 1 << 16, 0x900000
    registers = {name: ISAS[isa].unicorn.ids[name] for name in (*mode.registers, mode.pc)}
    engine, place, ran = None, 0, 0
    for name in ("one byte", "0f", "0f 38", "0f 3a"):
        form = x86.FORMS[isa][name]
        for number in range(7, form.encodings, stride):
            code = form.code(number)
            length = ISAS[isa].instruction_length(code)
            if not length or Facts.CONTROL in ports._theirs(isa, code).facts:
                continue
            insn = take_apart(code, mode)
            if insn.refuses_lock or (insn.narrow and insn.is_near_branch):
                continue  # Unicorn does not refuse the first; about the second CPUs differ
            if not place % (size >> 4):
                engine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorns)
                engine.mem_map(0, size)  # where 16-bit addresses lead
                engine.mem_map(PAGES[0], size)
                engine.mem_map(data, size)
            address, place = PAGES[0] + place % (size >> 4) * 16, place + 1
            for register in mode.registers:
                engine.reg_write(registers[register], data + size // 2)
            engine.mem_write(address, code + b"\x90")
            try:
                engine.emu_start(address, address + 32, count=1)
            except unicorn.UcError:
                continue
            went = engine.reg_read(registers[mode.pc]) - address
            if not went:  # a repeated instruction, or none that this CPU has
                continue
            # Unicorn takes 0f 78 for vmread, whatever prefix it has.
            assert went == length or b"\x0f\x78" in code[:5], code[:length].hex()
            ran += 1
    assert ran > 1500


@pytest.mark.parametrize("isa", x86.FORMS)
def test_on_x86_no_branch_is_by_a_distance_of_nothing(isa):
    # The plan of one is that of a nop: of what it is, it says too little.
    assert all(tail[0] for form in some(x86.FORMS[isa].values()) for tail in some(form.tails))


def test_on_x86_an_operand_relative_to_rip_is_where_capstone_has_it():
    detailed = capstone.Cs(*X86_64.capstone)
    detailed.detail = True
    met = 0
    for form in x86.FORMS["x86_64"].values():
        for number in range(3, form.encodings, form.encodings // 3000 | 1):
            code = form.code(number)
            insn, other = take_apart(code), next(detailed.disasm(code, 0, 1), None)
            if insn is None or other is None or other.mnemonic.endswith(("ud0", "ud1")):  # capstone ends these early
                continue
            if insn.relative_at is not None or "[rip" in other.op_str or "[eip" in other.op_str:
                assert insn.relative_at == other.modrm_offset, code.hex()
                met += 1
    assert met > 150


def test_capstone_decodes_what_the_chunks_of_an_isa_say():
    form = FORMS["riscv64"]["half 2"]
    assert form.word(5) == 22
    assert Chunk("riscv64", "half 2", 4, 3, 2).numbers == range(4, 10, 2)
    assert decoder("riscv64").decode(b"\x82\x80")
    assert decoder("riscv64").text == "c.jr ra"
    assert decoder("aarch64").decode(AARCH64.traps.breakpoints[0])
    assert decoder("aarch64").text == "brk #0x40d"
