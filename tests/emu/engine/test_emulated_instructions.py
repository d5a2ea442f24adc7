"""Emulated instructions: counters come from virtual time, random numbers from a seed, and nothing aborts the host."""

import ctypes
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from emu.engine import native_callbacks
from emu.engine.errors import PageFaultError
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.state import HANDLED
from emu.guest.function import CODE, FunctionFaultError, FunctionGuest
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from emu.isa.x86.cpuid import answer
from tests.emu.guest.linux.elf_program import elf_program

ROOT = Path(__file__).parents[3]
engines = pytest.mark.parametrize(
    "accelerated",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
        ),
        False,
    ],
    ids=["native", "python"],
)
NOPS = {"x86_64": "90", "i386": "90", "aarch64": "1f2003d5", "riscv64": "13000000"}
RETURNS = {"x86_64": "c3", "i386": "c3", "aarch64": "c0035fd6", "riscv64": "8280"}
INVALID_OPCODE = 6
DEBUG = 1
TRAP_FLAG = 0x100
# The instruction, and what it gives when n instructions of 10 ns came before it.
COUNTERS = {
    ("x86_64", "rdtsc", "0f31"): lambda n: 10 * n,
    ("x86_64", "rdtscp", "0f01f9"): lambda n: 10 * n,
    ("x86_64", "rdtsc with prefixes", "662e0f31"): lambda n: 10 * n,
    ("i386", "rdtsc", "0f31"): lambda n: 10 * n,
    ("i386", "rdtscp", "0f01f9"): lambda n: 10 * n,
    ("aarch64", "mrs x0, cntvct_el0", "40e03bd5"): lambda n: 10 * n // 16,
    ("aarch64", "mrs x0, cntpct_el0", "20e03bd5"): lambda n: 10 * n // 16,
    ("riscv64", "rdcycle a0", "732500c0"): lambda n: n,
    ("riscv64", "rdtime a0", "732510c0"): lambda n: n // 10,
    ("riscv64", "rdinstret a0", "732520c0"): lambda n: n,
}
RANDOM = {
    "x86_64": {"rdrand rax": ("480fc7f0", 64), "rdseed eax": ("0fc7f8", 32), "rdrand r8w": ("66410fc7f0", 16)},
    "i386": {"rdrand eax": ("0fc7f0", 32), "rdseed ax": ("660fc7f8", 16)},
}
LOCKED = {
    "x86_64": ["f00fa3c3", "f00fabc3", "f00fb3c3", "f00fbbc3", "f00fbae805", "f0480fabc3", "66f00fabc3", "f0f20fbbc3"],
    "i386": ["f00fa3c3", "f00fabc3", "f00fb3c3", "f00fbbc3", "f00fbae805", "66f00fabc3", "f0f20fbbc3"],
}
# Instructions that the CPU does not have, and the number of QEMU's exception.  Unicorn makes no block of c.unimp.  On
# i386 FBT's breakpoint is such an instruction, so each asks for a probe.
UNDEFINED = [
    *(("x86_64", code, INVALID_OPCODE) for code in ("0f0b", "06")),
    ("aarch64", "00000000", 1),
    *(("riscv64", code, 2) for code in ("0000", "0400", "1c00", "0120", "8881", "4d9d", "759d", "ffffffff")),
]
# An instruction whose bytes hold a special one's; the same ones without LOCK, or with an operand in memory.
ORDINARY = {
    "x86_64": ["488b40f00fabc1", "0fabc1", "b8f00fabc1", "f00fab08", "4889e0f0480fba2800", "b80f310f31"],
    "i386": ["8b40f00fabc1", "0fabc1", "b8f00fabc1", "f00fab08", "f00fba2800", "b80f310f31"],
}


@engines
@pytest.mark.parametrize(("case", "ticks"), COUNTERS.items(), ids=[" ".join(case[:2]) for case in COUNTERS])
@pytest.mark.parametrize("before", [0, 1, 40])
def test_a_counter_counts_virtual_time(case, ticks, before, accelerated):
    isa, _, code = case
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(NOPS[isa] * before + code + RETURNS[isa]), accelerated=accelerated)
    assert guest.call(0x1234, 0x5678) == ticks(before)
    assert guest.engine.instructions == before + 3  # with the return, and the instruction it lands on


# cpuid, then the answer's registers added up: mov eax, leaf; xor ecx, ecx; cpuid; add eax, ebx, ecx and edx.
IDENTIFIES = "b8{leaf}31c90fa201d801c801d0"


@engines
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize("leaf", [0, 1, 2, 4, 7, 0xB, 0xD, 0x14, 0x4000_0000, 0x8000_0000, 0x8000_0001, 0x8000_0004])
@pytest.mark.parametrize("cr4", [0, 1 << 18])
def test_cpuid_answers_from_a_table(isa, leaf, cr4, accelerated):
    code = bytes.fromhex(IDENTIFIES.format(leaf=leaf.to_bytes(4, "little").hex()) + "c3")
    guest = FunctionGuest(ISAS[isa], code, accelerated=accelerated)
    guest.engine.write_register("cr4", guest.engine.read_register("cr4") & ~(1 << 18) | cr4)
    assert guest.call() & 0xFFFF_FFFF == sum(answer(leaf, 0, cr4, long_mode=isa == "x86_64")) & 0xFFFF_FFFF


@engines
@pytest.mark.parametrize(
    ("isa", "code", "bits"), [(isa, *row) for isa, rows in RANDOM.items() for row in rows.values()]
)
def test_random_numbers_are_the_same_in_every_run_and_set_the_carry_flag(isa, code, bits, accelerated):
    guests = [FunctionGuest(ISAS[isa], bytes.fromhex(code + "c3"), accelerated=accelerated) for _ in range(2)]
    register = ISAS[isa].registers.registers[8 if code.startswith("6641") else 0].name
    values = []
    for guest in guests:
        guest.engine.write_register(register, 0)
        guest.engine.write_register(ISAS[isa].traps.flags, 0x8D6)
        guest.call()
        values.append(guest.engine.read_register(register))
        assert guest.engine.read_register(ISAS[isa].traps.flags) & 0x8D5 == 1
    assert values[0] == values[1]
    assert 0 < values[0] < 1 << bits
    assert values[0] >> bits - 12  # all of the width is used


@engines
@pytest.mark.parametrize(("isa", "code"), [(isa, code) for isa, codes in LOCKED.items() for code in codes])
@pytest.mark.parametrize("before", [0, 3])
def test_lock_before_a_bit_test_of_a_register_is_refused(isa, code, before, accelerated):
    """Unicorn aborts the process when it translates one."""
    guest = FunctionGuest(ISAS[isa], bytes.fromhex("90" * before + code + "c3"), accelerated=accelerated)
    with pytest.raises(FunctionFaultError, match=f"exception {INVALID_OPCODE} at {CODE + before:#x}"):
        guest.call()
    assert guest.engine.instructions == before


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_machine_code_finds_what_python_finds_with_prefixes(isa):
    guest = FunctionGuest(ISAS[isa], bytes(64), accelerated=True)
    engine, rules = guest.engine, ISAS[isa].unicorn.emulated
    engine.write_register("hflags", engine.read_register("hflags") | 3)  # a program's instructions
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    ask = compare(engine.callbacks.emulated[0].value)
    key, found = ctypes.c_uint64(CODE), 0
    codes = [
        bytes.fromhex(prefixes) + opcode + bytes((modrm, 0x80))
        for prefixes in ("", "f0", "66f0", "f0f3", "f048", "2e", "66", "f2", "f3", "f248")
        for opcode in (*(bytes((one,)) for one in range(256)), *(bytes((0x0F, one)) for one in range(256)))
        for modrm in (0x00, 0x08, 0x10, 0x28, 0x38, 0xC0, 0xC8, 0xF0, 0xFF)
    ]
    codes += [
        bytes((first, second, 0x70, opcode, 0xC1))
        for first in (0xC4, 0xC5, 0x8F)
        for second in range(256)
        for opcode in (0x00, 0x58, 0xF0, 0xF2, 0xF3, 0xF5, 0xF6, 0xF7)
    ]
    for code in codes:
        engine.memory.write(CODE, code.ljust(16, b"\x90"))
        wanted = rules.found(engine.cpu, lambda at: engine.memory.read(at, 1)[0], CODE)
        assert (ask(ctypes.byref(key), None, None) == 0) == wanted, code.hex()
        found += wanted
    assert 0 < found < len(codes)


@engines
@pytest.mark.parametrize(("isa", "code"), [(isa, code) for isa, codes in ORDINARY.items() for code in codes])
def test_what_only_looks_like_a_special_instruction_runs(isa, code, accelerated):
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(code), accelerated=accelerated)
    length = len(bytes.fromhex(code))
    engine = guest.engine
    place = guest.allocate(64) + 32
    registers = ISAS[isa].registers
    for name in (registers.registers[0].name, registers.registers[3].name):
        engine.write_register(name, place)
    engine.write_register(registers.sp, place)
    engine.pc, steps = CODE, 0
    while engine.pc < CODE + length and steps < 4:
        engine.step()
        steps += 1
    assert engine.pc == CODE + length


@engines
@pytest.mark.parametrize(("isa", "code", "number"), UNDEFINED)
@pytest.mark.parametrize("before", [0, 64])
def test_an_undefined_instruction_is_one_where_no_page_precedes_it(isa, code, number, before, accelerated):
    nops = bytes.fromhex(NOPS[isa]) * (before // len(bytes.fromhex(NOPS[isa])))
    guest = FunctionGuest(ISAS[isa], nops + bytes.fromhex(code).ljust(8, b"\1"), accelerated=accelerated)
    with pytest.raises(FunctionFaultError, match=f"exception {number} at {CODE + before:#x}"):
        guest.call()
    assert guest.engine.memory.space.look_up(CODE - 1, Access.EXECUTE) is None


@engines
@pytest.mark.parametrize(("isa", "name", "code"), COUNTERS)
def test_a_step_at_the_start_of_a_page_is_of_one_instruction(isa, name, code, accelerated):
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(code) + bytes.fromhex(NOPS[isa]) * 8, accelerated=accelerated)
    guest.engine.pc = CODE
    guest.engine.step()
    assert guest.engine.pc == CODE + len(bytes.fromhex(code)), name


@engines
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_a_linux_program_gets_sigill_for_it(isa, accelerated, tmp_path):
    path = tmp_path / "program"
    path.write_bytes(elf_program(isa, bytes.fromhex("9090f00fabc390")))
    path.chmod(0o755)
    guest = LinuxGuest(ISAS[isa], Program(str(path)), accelerated=accelerated)
    guest.run(guest.now() + 1_000_000)
    assert guest.exit_status == 128 + 4


@engines
@pytest.mark.parametrize("isa", ISAS)
def test_code_that_ends_with_its_page_is_not_read_behind_it(isa, accelerated):
    """The last bytes of a page may look like the beginning of an emulated instruction; the next page is not there."""
    tail = {"x86_64": "f3c3", "i386": "f3c3", "aarch64": "c0035fd6", "riscv64": "8280"}[isa]
    tail = bytes.fromhex(tail)
    filler = bytes.fromhex(NOPS[isa])
    code = filler * ((PAGE - len(tail)) // len(filler))
    code += bytes.fromhex("0100") * ((PAGE - len(tail) - len(code)) // 2) + tail
    guest = FunctionGuest(ISAS[isa], code, accelerated=accelerated)
    assert len(code) == PAGE
    guest.call(1, 2)


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("isa", ISAS)
def test_machine_code_and_python_find_the_same_instructions(isa):
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(NOPS[isa]) * 16, accelerated=True)
    guest.engine.pc = CODE
    guest.engine.run(hard=0)  # maps the page for the CPU
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        guest.engine.callbacks.emulated[0].value
    )
    key = ctypes.c_uint64(CODE)
    draw = random.Random(isa)  # noqa: S311  the same in every run
    found = 0
    for code in samples(isa, draw):
        guest.engine.memory.write(CODE, code.ljust(24, b"\0"))
        mine = guest.engine.emulated.found(CODE)
        assert mine is (compare(ctypes.addressof(key), None, None) == 0), code.hex()
        found += mine
    assert found > 20


def samples(isa, draw):
    known = [bytes.fromhex(code) for name, _, code in COUNTERS if name == isa]
    known += [bytes.fromhex(code) for code in (*LOCKED.get(isa, ()), *ORDINARY.get(isa, ()))]
    known += [bytes.fromhex(code) for code, _ in RANDOM.get(isa, {}).values()]
    known += [bytes.fromhex(code) for name, code, _ in UNDEFINED if name == isa]
    prefixes = bytes.fromhex("f0f2f3662e6764654048") if isa in LOCKED else b""
    for _ in range(4000):
        code = bytearray(draw.choice(known) + draw.randbytes(8))
        for _ in range(draw.randrange(3)):
            code[draw.randrange(6)] = draw.choice((draw.randrange(256), 0x0F, 0xF0, 0x73))
        yield bytes(draw.choices(prefixes, k=draw.randrange(17)) if prefixes else b"")[:16] + bytes(code)[:8]


READ_ALL = """
import sys
from emu.guest.function import FunctionGuest
from emu.guest.linux.guest import LinuxGuest
from emu.isa import ISAS
isa, code = ISAS[sys.argv[1]], bytes.fromhex(sys.argv[2])
guest = FunctionGuest(isa, code)
for _ in range(2):
    guest.call(1, 2)
    print([guest.engine.read_register(register.name) for register in isa.registers.registers if register.slot])
print(guest.engine.instructions, guest.now())
"""


@pytest.mark.parametrize("isa", ISAS)
def test_two_processes_read_the_same_counters_and_random_numbers(isa):
    special = [code for name, _, code in COUNTERS if name == isa]
    special += [code for code, _ in RANDOM.get(isa, {}).values()]
    code = NOPS[isa].join(special) + RETURNS[isa]
    command = [sys.executable, "-c", READ_ALL, isa, code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert shown[0] == shown[1]
    assert shown[0]


# Instructions behind which a CPU with the trap flag has its debug exception; pause leaves QEMU's loop.
STEPPED = {
    "pause": "f390", "pause with prefixes": "662ef390", "nop": "90", "xchg": "93", "cpuid": "0fa2", "rdtsc": "0f31",
    "rdtscp": "0f01f9", "rdrand": "0fc7f0", "xgetbv": "0f01d0", "mfence": "0faef0", "rep movsb": "f3a4", "lodsb": "ac",
    "jmp": "eb00", "call": "e800000000", "pushf": "9c", "fninit": "dbe3", "cld": "fc", "leave": "c9", "loop": "e200",
}  # fmt: skip
STEPPED_64 = {"xchg r8d, eax": "f34190", "pause with rex": "f34890", "rdrand rax": "480fc7f0"}


@engines
@pytest.mark.parametrize("name", [*STEPPED, *STEPPED_64])
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_the_trap_flag_stops_the_cpu_after_one_instruction(isa, name, accelerated):
    if isa == "i386" and name in STEPPED_64:
        pytest.skip("an instruction of 64 bits")
    code = bytes.fromhex((STEPPED | STEPPED_64)[name])
    guest = FunctionGuest(ISAS[isa], code + bytes.fromhex(NOPS[isa] * 9 + RETURNS[isa]), accelerated=accelerated)
    engine, flags, seen = guest.engine, ISAS[isa].traps.flags, []
    prefix = "r" if isa == "x86_64" else "e"
    for register in ("si", "di", "bp", "sp"):
        engine.write_register(prefix + register, guest.stack - 256)
    engine.write_register(prefix + "cx", 1 if name in {"rep movsb", "loop"} else 0)
    engine.pc = CODE
    engine.write_register(flags, engine.read_register(flags) | TRAP_FLAG)
    before = engine.instructions

    def trap(number):
        seen.append((number, engine.pc, engine.instructions - before))
        engine.write_register(flags, engine.read_register(flags) & ~TRAP_FLAG)
        engine.stop()
        return HANDLED

    engine.handlers.taker.trap = trap
    engine.run(hard=before + 5)
    assert seen == [(DEBUG, CODE + len(code), 1)]


@engines
@pytest.mark.parametrize("isa", ISAS)
def test_zeros_in_a_page_without_code_are_no_instruction(isa, accelerated):
    """The start of a page of data looks like an undefined instruction of RISC-V, which it is not: it is not fetched."""
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(NOPS[isa]) * 8, accelerated=accelerated)
    place = -(-guest.allocate(2 * PAGE) // PAGE) * PAGE
    guest.engine.pc = place
    with pytest.raises(PageFaultError, match=f"{place:#x}"):
        guest.engine.run(hard=guest.engine.instructions + 4)
