"""Instructions that only a kernel may use end a program with the signal that Linux sends."""

import signal

import pytest

from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import elf_program

SEGV, ILL, TRAP = signal.SIGSEGV, signal.SIGILL, signal.SIGTRAP

X86 = {
    "cli": "fa", "sti": "fb", "hlt": "f4", "in al, dx": "ec", "in eax, 0x10": "e510", "out dx, al": "ee",
    "insb": "6c", "outsd": "6f", "rdmsr": "0f32", "wrmsr": "0f30", "mov eax, cr0": "0f20c0", "mov cr3, eax": "0f22d8",
    "mov eax, dr7": "0f21f8", "clts": "0f06", "lgdt": "0f0110", "lidt": "0f0118", "lldt": "0f00d0", "ltr": "0f00d8",
    "rdpmc": "0f33", "lmsw": "0f01f0", "invlpg": "0f0138", "wbinvd": "0f09", "invd": "0f08",
}  # fmt: skip
X86_64 = X86 | {"swapgs": "0f01f8"}
# Words, the lowest byte last.
AARCH64 = {
    "msr daifset, #2": "d50342df", "mrs x0, sctlr_el1": "d5381000", "msr ttbr0_el1, x0": "d5182000",
    "mrs x0, vbar_el1": "d538c000", "msr spsel, #1": "d50041bf", "tlbi vmalle1": "d508871f", "eret": "d69f03e0",
    "hvc #0": "d4000002", "smc #0": "d4000003", "ic iallu": "d508751f", "msr elr_el1, x0": "d5184020",
    "mrs x0, currentel": "d5384240", "at s1e1r, x0": "d5087800",
}  # fmt: skip
RISCV64 = {
    "csrr a0, mstatus": "30002573", "csrw sstatus, a0": "10051073", "csrr a0, satp": "18002573",
    "csrw mtvec, a0": "30551073", "sret": "10200073", "mret": "30200073", "sfence.vma": "12000073",
    "wfi": "10500073", "csrr a0, mhartid": "f1402573", "csrw stvec, a0": "10551073",
}  # fmt: skip
CASES = [
    *(("x86_64", name, bytes.fromhex(code), SEGV) for name, code in X86_64.items()),
    *(("i386", name, bytes.fromhex(code), SEGV) for name, code in X86.items()),
    *(("aarch64", name, bytes.fromhex(code)[::-1], ILL) for name, code in AARCH64.items()),
    *(("riscv64", name, bytes.fromhex(code)[::-1], ILL) for name, code in RISCV64.items()),
]


def run(isa, code, path, *, accelerated=None):
    path.write_bytes(elf_program(isa, code))
    path.chmod(0o755)
    guest = LinuxGuest(ISAS[isa], Program(str(path)), accelerated=accelerated)
    guest.run(guest.now() + 1_000_000)
    return guest


def first_address(isa, folder):
    """Return where a program begins that its first instruction ends."""
    code = {"aarch64": bytes(4), "riscv64": bytes(4)}.get(isa, bytes.fromhex("0f0b"))
    return run(isa, code, folder / "undefined").engine.pc


@pytest.mark.parametrize(("isa", "name", "code", "wanted"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_a_privileged_instruction_is_refused(isa, name, code, wanted, tmp_path):
    guest = run(isa, code, tmp_path / "program")
    assert guest.exit_status == 128 + wanted, name
    assert guest.engine.pc == first_address(isa, tmp_path), f"{name} has run, and what follows it has not"


# What stands before an instruction changes neither the signal nor where it is told to have happened.
PREFIXED = [
    "f2f4", "66f4", "2ef4", "f3f4", "2efa", "66fb", "f20f30", "2e0f32", "660f09", "2e0f06", "2e0f22c0", "670f0110",
]  # fmt: skip
UNDEFINED = ["0f0b", "0f34", "2e0f0b", "660f0b", "0fff", "f0f7d8"]


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize(
    ("code", "wanted"), [*((code, SEGV) for code in PREFIXED), *((code, ILL) for code in UNDEFINED)]
)
def test_the_fault_of_an_instruction_is_reported_at_its_first_byte(isa, code, wanted, tmp_path):
    guest = run(isa, bytes.fromhex("90" + code), tmp_path / "program")
    first = run(isa, bytes.fromhex("90f4"), tmp_path / "hlt")
    assert (guest.exit_status, guest.engine.pc) == (128 + wanted, first.engine.pc)


# Instructions that raise an exception by themselves: the signal, and where its frame's pc is behind a nop.  A native
# run of the same bytes gives these.
SOFTWARE = {
    "cc": (TRAP, 1), "cd03": (TRAP, 2), "66cc": (TRAP, 2), "f3cc": (TRAP, 2), "66cd03": (TRAP, 3), "f0cc": (ILL, 0),
    "f1": (TRAP, 1), "66f1": (TRAP, 2), "cd04": (SEGV, 2), "cd05": (SEGV, 0), "cd06": (SEGV, 0), "cd0e": (SEGV, 0),
    "cd01": (SEGV, 0), "cd2d": (SEGV, 0), "cd81": (SEGV, 0), "f0cd05": (ILL, 0), "f090": (ILL, 0), "f00fa2": (ILL, 0),
    "f08b00": (ILL, 0), "f00fa300": (ILL, 0), "f0c3": (ILL, 0),
}  # fmt: skip


@pytest.mark.parametrize("accelerated", [True, False], ids=["native", "python"])
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize("code", SOFTWARE)
def test_an_instruction_that_raises_an_exception_gives_the_signal_of_linux(isa, code, accelerated, tmp_path):
    wanted, behind = SOFTWARE[code]
    guest = run(isa, bytes.fromhex("90" + code + "f4"), tmp_path / "program", accelerated=accelerated)
    first = run(isa, bytes.fromhex("90f4"), tmp_path / "hlt").engine.pc
    assert (guest.exit_status, guest.engine.pc - first) == (128 + wanted, behind)


# exit(0) behind what a program may do although kernels do it too.
EXITS = {
    "x86_64": "b83c00000031ff0f05",
    "i386": "b80100000031dbcd80",
    "aarch64": "a80b805200008052010000d4",
    "riscv64": "9308d0051305000073000000",
}
ALLOWED = [
    ("x86_64", "pushf; popf", "9c9d"),
    ("x86_64", "smsw eax", "0f01e0"),
    ("i386", "pushf; popf", "9c9d"),
    ("i386", "mov eax, ds", "8cd8"),
    ("aarch64", "mrs x0, ctr_el0", "20003bd5"),
    ("aarch64", "mrs x0, dczid_el0", "e0003bd5"),
    ("aarch64", "mov x0, sp; dc zva, x0", "e003009120740bd5"),
    ("aarch64", "mov x0, sp; dc cvau, x0; ic ivau, x0", "e0030091207b0bd520750bd5"),
    ("aarch64", "mrs x0, tpidr_el0; mrs x1, fpcr", "40d03bd501443bd5"),
    ("aarch64", "wfe; wfi", "5f2003d57f2003d5"),
    ("riscv64", "frcsr a0; fence.i", "732530000f100000"),
]


@pytest.mark.parametrize(("isa", "name", "code"), ALLOWED, ids=[f"{case[0]}-{case[1]}" for case in ALLOWED])
def test_a_program_may_use_what_linux_lets_it_use(isa, name, code, tmp_path):
    guest = run(isa, bytes.fromhex(code + EXITS[isa]), tmp_path / "program")
    assert guest.exit_status == 0, name
