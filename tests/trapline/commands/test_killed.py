"""A traced program that a signal kills is told in one line, and by the exit status of uprobe."""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import PAGE, elf_program
from tests.support.command import run_trapline

# An instruction that the CPU lacks: sha1nexte, ldadd, sh1add; and one that loads from address 8.
ILLEGAL = {"x86_64": "0f38c8c1", "i386": "0f38c8c1", "aarch64": "e10320f8", "riscv64": "33a5c520"}
FAULTY = {"x86_64": "488b042508000000", "i386": "a108000000", "aarch64": "000080d2000440f9", "riscv64": "03358000"}


def program(path, isa, code):
    path.write_bytes(elf_program(isa, bytes.fromhex(code), writable=False))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("codes", "signal", "number"), [(ILLEGAL, "SIGILL", 4), (FAULTY, "SIGSEGV", 11)])
def test_uprobe_says_which_signal_has_killed_the_program(isa, codes, signal, number, tmp_path):
    path = program(tmp_path / "program", isa, codes[isa])
    done = run_trapline(["uprobe", "-F", "-c", path, f"p:{path}:{PAGE:#x}"])
    assert done.returncode == 128 + number
    *said, ending = done.stderr.splitlines()
    assert ending == f"trapline: pid 100 terminated by {signal}"
    assert len(said) == (number == 4)
    assert all(" needs " in line and "illegal instruction at 0x400000: " in line for line in said)


@pytest.mark.parametrize("isa", ISAS)
def test_quiet_does_not_hide_that_the_program_was_killed(isa, tmp_path):
    path = program(tmp_path / "program", isa, FAULTY[isa])
    done = run_trapline(["dtrace", "-x", "evaltime=exec", "-qn", "BEGIN { }", "-c", path])
    assert done.stderr == "dtrace: pid 100 terminated by SIGSEGV\n"
    assert done.returncode == 0
