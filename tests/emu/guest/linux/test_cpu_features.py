"""A program is promised the features of the CPU that work, and no others, on every ISA.

AT_HWCAP and cpuid say what a program may use; for each feature one of its instructions is run.
"""

import struct

import pytest

from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from emu.isa.x86.cpuid import answer
from tests.emu.guest.linux.elf_program import elf_program
from tests.support.some import some

ILL = 128 + 4
_OSXSAVE_IN_CR4 = 1 << 18


def run(isa, code, folder, *, output=None):
    path = folder / "program"
    path.write_bytes(elf_program(isa, code))
    path.chmod(0o755)
    standard = Standard(write=output.extend) if output is not None else Standard()
    guest = LinuxGuest(ISAS[isa], Program(str(path)), standard=standard)
    guest.run(guest.now() + 1_000_000)
    return guest.exit_status


EXITS = {
    "x86_64": "b83c00000031ff0f05",
    "i386": "b80100000031dbcd80",
    "aarch64": "a80b805200008052010000d4",
    "riscv64": "9308d0051305000073000000",
}
# By leaf, register and bit of cpuid: an instruction.  It works if the bit is set; if not, it is #UD.
BOTH = {
    "fpu": ((1, "edx", 0), "d9e8"),  # fld1
    "tsc": ((1, "edx", 4), "0f31"),
    "cx8": ((1, "edx", 8), "0fc70c24"),  # cmpxchg8b [sp]
    "sysenter": ((1, "edx", 11), "0f34"),
    "cmov": ((1, "edx", 15), "0f44c1"),
    "clflush": ((1, "edx", 19), "0fae3c24"),
    "mmx": ((1, "edx", 23), "0f6fc1"),
    "sse": ((1, "edx", 25), "0f58c1"),  # addps
    "sse2": ((1, "edx", 26), "660f58c1"),  # addpd
    "sse3": ((1, "ecx", 0), "f20f7cc1"),  # haddps
    "pclmulqdq": ((1, "ecx", 1), "660f3a44c100"),
    "monitor": ((1, "ecx", 3), "0f01c8"),
    "ssse3": ((1, "ecx", 9), "660f3800c1"),  # pshufb
    "fma": ((1, "ecx", 12), "c4e27198c2"),  # vfmadd132ps
    "sse4.1": ((1, "ecx", 19), "660f3817c1"),  # ptest
    "sse4.2": ((1, "ecx", 20), "660f3837c1"),  # pcmpgtq
    "movbe": ((1, "ecx", 22), "0f38f00424"),
    "popcnt": ((1, "ecx", 23), "f30fb8c1"),
    "aes": ((1, "ecx", 25), "660f38dcc1"),
    "osxsave": ((1, "ecx", 27), "31c90f01d0"),  # xgetbv
    "avx": ((1, "ecx", 28), "c5f058c2"),  # vaddps
    "f16c": ((1, "ecx", 29), "c4e27913c1"),  # vcvtph2ps
    "rdrand": ((1, "ecx", 30), "0fc7f0"),
    "bmi1": ((7, "ebx", 3), "c4e270f2c2"),  # andn
    "avx2": ((7, "ebx", 5), "c5f5fec2"),  # vpaddd ymm
    "bmi2": ((7, "ebx", 8), "c4e273f5c2"),  # pdep
    "erms": ((7, "ebx", 9), "31c9f3a4"),
    "rtm": ((7, "ebx", 11), "c7f800000000"),  # xbegin
    "avx512f": ((7, "ebx", 16), "62f1744858c2"),  # vaddps zmm
    "adx": ((7, "ebx", 19), "660f38f6c1"),  # adcx
    "sha": ((7, "ebx", 29), "0f38c8c1"),  # sha1nexte
    "vaes": ((7, "ecx", 9), "c4e275dcc2"),
    "rdpid": ((7, "ecx", 22), "f30fc7f8"),
    "xsaveopt": ((0xD, "eax", 0), "0fae3424"),
    "xsavec": ((0xD, "eax", 1), "0fc72424"),
    "rdtscp": ((0x8000_0001, "edx", 27), "0f01f9"),
    "sse4a": ((0x8000_0001, "ecx", 6), "660f79c1"),  # extrq
    "xop": ((0x8000_0001, "ecx", 11), "8fe978c1c0"),
    "waitpkg": ((7, "ecx", 5), "660faef1"),  # tpause
    "movntss": ((0x8000_0001, "ecx", 6), "f30f2b0424"),
    "avx of 128 bits, pshufb": ((1, "ecx", 28), "c4e27100c2"),
    "avx of 128 bits, moved": ((1, "ecx", 28), "c5f828c1"),
    "f3 before AVX": ((1, "ecx", 28), "c5fa58c2"),
    "fma4": ((0x8000_0001, "ecx", 16), "c4e36968c120"),
}
LONG = {
    "cx16": ((1, "ecx", 13), "480fc70c24"),
    "fsgsbase": ((7, "ebx", 0), "f3480faec0"),
    "lahf": ((0x8000_0001, "ecx", 0), "9f"),
}
FEATURES = {"x86_64": BOTH | LONG, "i386": BOTH}
# A stack that XSAVE and cmpxchg16b can use: aligned, with an area below, and the mask of states.
PREPARED = {
    "x86_64": "4883e4c04881ec00100000" + "b803000000" + "31d2",
    "i386": "83e4c081ec00100000" + "b803000000" + "31d2",
}


def promised(isa, place):
    leaf, register, bit = place
    found = answer(leaf, 1 if leaf == 0xD else 0, _OSXSAVE_IN_CR4, long_mode=isa == "x86_64")
    return bool(getattr(found, register) >> bit & 1)


@pytest.mark.parametrize(("isa", "name"), [(isa, name) for isa, rows in FEATURES.items() for name in rows])
def test_cpuid_promises_an_instruction_if_and_only_if_it_works(isa, name, tmp_path):
    place, code = FEATURES[isa][name]
    status = run(isa, bytes.fromhex(PREPARED[isa] + code + EXITS[isa]), tmp_path)
    assert status == (0 if promised(isa, place) else ILL)


# Every feature that is promised has a row above, or is no instruction of programs.
KERNELS = {
    (1, "edx"): [2, 3, 5, 6, 7, 9, 12, 13, 14, 16, 17, 24],  # de pse msr pae mce apic mtrr pge mca pat pse36 fxsr
    (1, "ecx"): [26],  # xsave: osxsave says that it works
    (7, "ebx"): [7],  # smep
    (0x8000_0001, "edx"): [11, 20, 29],  # syscall, with which all programs end; nx; lm
    (0x8000_0001, "ecx"): [0, 5],  # lahf (a row of x86-64); lzcnt, below
}


@pytest.mark.parametrize("isa", FEATURES)
def test_no_promise_is_left_untried(isa):
    rows = {place for places in FEATURES.values() for place, _ in places.values()}
    for leaf, register in some({(leaf, register) for leaf, register, _ in rows}):
        for bit in range(32):
            if promised(isa, (leaf, register, bit)) and leaf != 0xD:
                assert (leaf, register, bit) in rows or bit in KERNELS.get((leaf, register), []), (leaf, register, bit)


@pytest.mark.parametrize("isa", FEATURES)
def test_lzcnt_is_not_bsr(isa, tmp_path):
    # mov ecx, 1; lzcnt eax, ecx; cmp eax, 31; je +2; ud2
    assert run(isa, bytes.fromhex("b901000000f30fbdc183f81f74020f0b" + EXITS[isa]), tmp_path) == 0


@pytest.mark.parametrize("isa", FEATURES)
def test_the_states_that_xgetbv_tells_are_those_of_cpuid(isa, tmp_path):
    states = answer(0xD, 0, 0, long_mode=isa == "x86_64").eax
    # xor ecx, ecx; xgetbv; cmp eax, states; je +2; ud2
    code = bytes.fromhex("31c90f01d03d") + struct.pack("<I", states) + bytes.fromhex("74020f0b" + EXITS[isa])
    assert run(isa, code, tmp_path) == 0


# -- AT_HWCAP of the others: bit -> an instruction


AARCH64 = {
    0: ("fp", 0x1E602820),  # fadd d0, d1, d0
    1: ("asimd", 0x4E208420),  # add v0.16b, v1.16b, v0.16b
    3: ("aes", 0x4E284820),
    4: ("pmull", 0x0EE0E020),
    5: ("sha1", 0x5E280820),  # sha1h
    6: ("sha2", 0x5E282820),  # sha256su0
    7: ("crc32", 0x1AC04020),  # crc32b
    8: ("atomics", 0xF82003E1),  # ldadd x0, x1, [sp]
    9: ("fphp", 0x1EE02820),
    12: ("asimdrdm", 0x6E408420),  # sqrdmlah
    15: ("lrcpc", 0x38BFC3E0),  # ldaprb w0, [sp]
    17: ("sha3", 0xCE010800),  # eor3
    18: ("sm3", 0xCE60C020),  # sm3partw1
    20: ("asimddp", 0x4E809420),  # sdot
    21: ("sha512", 0xCEC08020),
    22: ("sve", 0x04200000),
}


@pytest.mark.parametrize("bit", AARCH64)
def test_arm64_promises_an_instruction_if_and_only_if_it_works(bit, tmp_path):
    name, word = AARCH64[bit]
    status = run("aarch64", word.to_bytes(4, "little") + bytes.fromhex(EXITS["aarch64"]), tmp_path)
    assert status == (0 if ISAS["aarch64"].linux.hwcap >> bit & 1 else ILL), name


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_every_promised_bit_is_tried(isa):
    rows = AARCH64 if isa == "aarch64" else {ord(letter) - ord("a"): code for letter, code in RISCV64.items()}
    assert {bit for bit in range(64) if ISAS[isa].linux.hwcap >> bit & 1} <= set(rows)


RISCV64 = {
    "i": "13000000",
    "m": "3385c502",  # mul a0, a1, a2
    "a": "2f20a100",  # amoadd.w zero, a0, (sp)
    "f": "53750500",  # fadd.s fa0, fa0, ft0
    "d": "53750502",
    "c": "0100",
    "v": "57700000",  # vsetvli zero, zero, e8
    "b": "33c5c520",  # xnor: Zbb
}


@pytest.mark.parametrize("letter", RISCV64)
def test_riscv_promises_an_extension_if_and_only_if_it_works(letter, tmp_path):
    status = run("riscv64", bytes.fromhex(RISCV64[letter] + EXITS["riscv64"]), tmp_path)
    assert status == (0 if ISAS["riscv64"].linux.hwcap >> ord(letter) - ord("a") & 1 else ILL)


# -- where a program reads it


@pytest.mark.parametrize("isa", FEATURES)
def test_at_hwcap_is_the_first_leaf_of_cpuid(isa):
    assert ISAS[isa].linux.hwcap == answer(1, 0, 0, long_mode=isa == "x86_64").edx
    assert ISAS[isa].linux.hwcap2 == (2 if isa == "x86_64" else 0)  # fsgsbase, of the 64-bit mode


@pytest.mark.parametrize(
    ("read", "status"),
    [
        ("00e03bd5", 62_500_000 & 0xFF),  # mrs x0, cntfrq_el0: the ticks of cntvct_el0 in a second
        ("20e03bd5", ILL),  # mrs x0, cntpct_el0: Linux keeps it for the kernel
        ("e0003bd5", 4),  # mrs x0, dczid_el0: DC ZVA clears 4 << 4 bytes, and is allowed
    ],
    ids=["cntfrq_el0", "cntpct_el0", "dczid_el0"],
)
def test_registers_that_aarch64_programs_may_read(read, status, tmp_path):
    leave = "a80b8052010000d4"  # mov w8, #93; svc #0
    assert run("aarch64", bytes.fromhex(read + leave), tmp_path) == status
