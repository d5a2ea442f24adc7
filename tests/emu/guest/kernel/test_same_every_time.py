"""Two processes of the host see the same kernel guest: counters, random numbers, times, cpuid.

A program of machine code reads what its ISA has, from user mode, and asks the kernel for random
bytes and the time; what it writes out is compared.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import BASE, PAGE, elf_program

ROOT = Path(__file__).parents[4]
# Where the program collects what it has read, and how much that is.
BUFFER = BASE + PAGE - 0x800
SIZE = 0x200
_FREEBSD = 9
_GETRANDOM, _CLOCK_GETTIME, _WRITE, _EXIT = 563, 232, 4, 1
_CPUID_LEAVES = (0, 1, 2, 4, 7, 0xB, 0xD, 0x8000_0001, 0x8000_0002)


def word(number):
    return number.to_bytes(4, "little")


def x86(isa):
    """Return the program of one of the two: what it stores is four bytes each."""
    long = isa == "x86_64"
    places = iter(range(BUFFER + 0x40, BUFFER + SIZE, 4))
    # mov [place], eax, ebx, ecx, edx; in 64-bit mode an absolute address needs a SIB byte.
    low = 4 if long else 5
    form = {"eax": low, "ebx": 0x18 | low, "ecx": 8 | low, "edx": 0x10 | low}

    def store(*names):
        return b"".join(bytes((0x89, form[name])) + (b"\x25" if long else b"") + word(next(places)) for name in names)

    def call(number, *arguments):
        if long:
            registers = (b"\xbf", b"\xbe", b"\xba")  # mov edi, esi, edx
            moved = b"".join(register + word(value) for register, value in zip(registers, arguments, strict=False))
            return moved + b"\xb8" + word(number) + b"\x0f\x05"
        pushed = b"".join(b"\x68" + word(value) for value in reversed((0, *arguments)))
        return pushed + b"\xb8" + word(number) + b"\xcd\x80\x83\xc4" + bytes((4 * len(arguments) + 4,))

    code = call(_GETRANDOM, BUFFER, 32, 0) + call(_CLOCK_GETTIME, 0, BUFFER + 32)
    for leaf in _CPUID_LEAVES:
        code += b"\xb8" + word(leaf) + b"\x31\xc9\x0f\xa2" + store("eax", "ebx", "ecx", "edx")
    for _ in range(2):
        code += b"\x0f\x31" + store("eax", "edx") + b"\x0f\x01\xf9" + store("eax", "ecx", "edx")  # rdtsc, rdtscp
        code += 2 * (b"\x0f\xc7\xf0" + store("eax"))  # rdrand
    return code + call(_WRITE, 1, BUFFER, SIZE) + call(_EXIT, 0)


def aarch64():
    """Return the program: x9 walks through the buffer."""

    def move(register, value):
        return word(0xD2800000 | (value & 0xFFFF) << 5 | register) + word(0xF2A00000 | (value >> 16) << 5 | register)

    def call(number, *arguments):
        moved = b"".join(move(register, value) for register, value in enumerate(arguments))
        return moved + move(8, number) + word(0xD4000001)

    code = call(_GETRANDOM, BUFFER, 32, 0) + call(_CLOCK_GETTIME, 0, BUFFER + 32) + move(9, BUFFER + 0x40)
    for _ in range(2):
        # mrs x0, cntvct_el0; str x0, [x9], #8
        code += word(0xD53BE040) + word(0xF8008520)
    return code + call(_WRITE, 1, BUFFER, SIZE) + call(_EXIT, 0)


def riscv64():
    """Return the program: s0 walks through the buffer."""

    def move(register, value):
        high = value + 0x800 >> 12
        low = value - (high << 12) & 0xFFF
        return word(high << 12 | register << 7 | 0x37) + word(low << 20 | register << 15 | register << 7 | 0x13)

    def call(number, *arguments):
        moved = b"".join(move(10 + place, value) for place, value in enumerate(arguments))
        return moved + move(5, number) + word(0x73)

    code = call(_GETRANDOM, BUFFER, 32, 0) + call(_CLOCK_GETTIME, 0, BUFFER + 32) + move(8, BUFFER + 0x40)
    for _ in range(2):
        for read in (0xC0002573, 0xC0102573, 0xC0202573):  # rdcycle, rdtime, rdinstret
            code += word(read) + word(0x00A43023) + word(0x00840413)  # sd a0, 0(s0); addi s0, s0, 8
    return code + call(_WRITE, 1, BUFFER, SIZE) + call(_EXIT, 0)


CODE = {"x86_64": lambda: x86("x86_64"), "i386": lambda: x86("i386"), "aarch64": aarch64, "riscv64": riscv64}
RUN = """
import sys
from emu.guest.kernel.guest import KernelGuest
from emu.isa import ISAS
program = bytes.fromhex(sys.stdin.read())
screen = bytearray()
files = {"bin/reader": program, "etc/rc": b"reader\\nreader\\ndate\\n"}
guest = KernelGuest(ISAS[sys.argv[1]], files=files, console=screen.extend)
guest.boot()
guest.run(60_000_000_000)
print(screen.hex(), guest.engine.instructions, guest.now(), guest.exit_status)
"""


@pytest.mark.parametrize("isa", ISAS)
def test_two_processes_see_the_same_kernel_guest(isa):
    program = bytearray(elf_program(isa, CODE[isa]().ljust(PAGE, b"\0")))
    program[7] = _FREEBSD
    environments = ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"})
    shown = [
        subprocess.run(
            [sys.executable, "-c", RUN, isa], input=program.hex(), env={**os.environ, "PYTHONPATH": str(ROOT), **more},
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout
        for more in environments
    ]  # fmt: skip
    assert shown[0] == shown[1]
    screen = bytes.fromhex(shown[0].split()[0])
    assert len(screen) > 2 * SIZE, screen[-200:]
    # Two runs in one guest differ: the buffer is what was read, not what was there.
    assert screen.count(bytes(SIZE)) == 0
