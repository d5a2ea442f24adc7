"""The registers with which a program starts are those that Linux gives it, on every ISA.

`initial` (testbins/linux/initial_<isa>.S) writes them out before it has changed any.
"""

import shutil
import struct
import subprocess

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from emu.isa.x86 import registers
from emu.unicorn_layout import library

X86_64 = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15 rflags cs ss ds es fs gs _".split()
I386 = "eax ecx edx ebx esp ebp esi edi eflags cs ss ds es fs gs _".split()
AARCH64 = [*(f"x{number}" for number in range(31)), "sp", "nzcv", "fpcr", "fpsr", "tpidr_el0"]
RISCV64 = [*(f"x{number}" for number in range(32)), "fcsr"]
NAMES = {"x86_64": X86_64, "i386": I386, "aarch64": AARCH64, "riscv64": RISCV64}
# FXSAVE's area (Intel SDM volume 1, table 10-2): control words, and the mask of MXCSR, which is the CPU's.
FXSAVE = 512
# What Linux sets (start_thread of each ISA, fpstate_init_user); all others are 0.
NOT_ZERO = {
    "x86_64": {"rflags": 0x202, "cs": 0x33, "ss": 0x2B, "fcw": 0x37F, "mxcsr": 0x1F80},
    "i386": {"eflags": 0x202, "cs": 0x23, "ss": 0x2B, "ds": 0x2B, "es": 0x2B, "fcw": 0x37F, "mxcsr": 0x1F80},
    "aarch64": {},
    "riscv64": {},
}
# qemu-user differs from Linux: it leaves the zero flag set and a selector in gs.
QEMU_DIFFERS = {"aarch64": {"nzcv"}, "i386": {"gs"}}
# Numbers of segment registers, and the bit of QEMU's hflags (target/i386/cpu.h).
ES, SS, DS = 0, 2, 3
HF_ADDSEG = 1 << 6
STACK_POINTER = {"x86_64": "rsp", "i386": "esp", "aarch64": "sp", "riscv64": "x2"}


def decoded(isa, data):
    """Return the registers that are not 0, but for the stack pointer; "vectors" if one of those is not."""
    names, word = NAMES[isa], "I" if isa == "i386" else "Q"
    size = struct.calcsize(f"<{len(names)}{word}")
    values = dict(zip(names, struct.unpack_from(f"<{len(names)}{word}", data), strict=True))
    vectors = data[size:]
    if isa in {"x86_64", "i386"}:
        assert len(vectors) >= FXSAVE
        vectors = vectors[-FXSAVE:]
        values["fcw"], values["fsw"], values["ftw"] = struct.unpack_from("<HHB", vectors)
        (values["mxcsr"],) = struct.unpack_from("<I", vectors, 24)
        vectors = vectors[5:24] + vectors[32:]
    values["vectors"] = int(any(vectors))
    assert values.pop(STACK_POINTER[isa]) % 16 == 0
    return {name: value for name, value in values.items() if value}


def here(isa):
    output = bytearray()
    guest = LinuxGuest(
        ISAS[isa], Program(str(images.linux(ISAS[isa], "initial"))), standard=Standard(write=output.extend)
    )
    guest.run(None)
    assert guest.exit_status == 0
    return decoded(isa, bytes(output))


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_starts_with_the_registers_of_linux(isa):
    assert here(isa) == NOT_ZERO[isa]


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_starts_with_the_registers_it_has_under_qemu(isa):
    qemu = shutil.which(f"qemu-{isa}")
    if qemu is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")
    ran = subprocess.run([qemu, images.linux(ISAS[isa], "initial")], stdout=subprocess.PIPE, timeout=60, check=True)
    ours, theirs = here(isa), decoded(isa, ran.stdout)
    for name in QEMU_DIFFERS.get(isa, ()):
        ours.pop(name, None)
        theirs.pop(name, None)
    assert ours == theirs


@pytest.mark.skipif(not library.this().is_known, reason="the known library has these offsets")
def test_no_base_of_a_segment_is_added():
    """QEMU adds the bases of ds, es and ss to each address if HF_ADDSEG is set; those of a program are 0."""
    guest = LinuxGuest(ISAS["i386"], Program(str(images.linux(ISAS["i386"], "initial"))))
    guest.run(None)
    engine = guest.engine
    bases = {engine.cpu.words[registers.segment(number) + 1] for number in (ES, SS, DS)}
    assert bases == {0}
    assert not engine.read_register("hflags") & HF_ADDSEG
