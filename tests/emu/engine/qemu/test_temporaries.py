"""Long blocks of instructions that keep QEMU's temporaries: compilers write them where constants are stored."""

import pytest

from emu.engine import native_callbacks
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import elf_program

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
modes = pytest.mark.parametrize("isa", ["x86_64", "i386"])
# fld1 twice: the numbers of the instructions' operands; xor eax, eax, and a pointer to the stack.
BEGINNING = "dbe3d9e8d9e8 31c0"
STACK = {"x86_64": "488d7c24c0", "i386": "8d7c24c0"}
EXIT = {"x86_64": "bf2a000000b83c0000000f05", "i386": "bb2a000000b801000000cd80"}
# Each can be repeated: fxch, fadd, fstl and fxch as in CPython's cmath, fcmov, pshufd, shufps, roundsd, crc32, extrq.
REPEATED = {
    "fxch": "d9c9",
    "fadd": "d8c1",
    "cmath": "dd17dd17d9c9",
    "fstl": "dd17",
    "fcmovb": "dac1",
    "pshufd": "660f70c101",
    "shufps": "0fc6c101",
    "roundsd": "660f3a0bc101",
    "crc32": "f20f38f1c0",
    "a mixture": "d9c9 90 0fc6c101 89c0 dd17",
}


@engines
@modes
@pytest.mark.parametrize("case", REPEATED)
def test_a_long_block_ends_sooner_and_the_program_goes_on(isa, case, accelerated, tmp_path):
    """The host's process would end here: QEMU writes behind its table."""
    path = tmp_path / "program"
    code = bytes.fromhex(BEGINNING + STACK[isa] + REPEATED[case] * 511 + EXIT[isa])
    path.write_bytes(elf_program(isa, code))
    path.chmod(0o755)
    guest = LinuxGuest(ISAS[isa], Program(str(path)), accelerated=accelerated)
    guest.run(guest.now() + 1_000_000)
    assert guest.exit_status == 42
