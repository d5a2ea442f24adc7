"""-x ram says how much memory a Linux guest has, for processes and files together."""

import pytest

from emu.guest.base import GuestError
from emu.guest.kernel.boot import images
from emu.guest.linux.errno import ENOSPC, LinuxError
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS, X86_64
from tests.emu.guest.linux.elf_program import elf_program
from trapline.consumer.usage import UsageError, parse_arguments


def guest(ram):
    return LinuxGuest(X86_64, Program(str(images.linux(X86_64, "tiny"))), ram=ram)


def test_files_count_against_the_memory_of_the_guest():
    from emu.guest.linux.fs.regular import RegularFile

    kernel = guest(16 << 20).kernel
    file = RegularFile(0o644)
    file.count_in(kernel.file_memory)
    file.truncate(1 << 40)
    file.write(1 << 39, bytes(8 << 20))
    with pytest.raises(LinuxError) as error:
        file.write(0, bytes(16 << 20))
    assert error.value.number == ENOSPC
    before = kernel.file_memory.pages
    assert before * 4096 >= 8 << 20
    del file, error
    assert kernel.file_memory.pages == 0, "a file that is gone gives its memory back"


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_larger_than_memory_ends_with_a_message(isa):
    program = Program(str(images.linux(ISAS[isa], "zoo")), ("memory",))
    with pytest.raises(GuestError, match="larger than the guest's memory, 0 MiB"):
        LinuxGuest(ISAS[isa], program, ram=64 << 10).run(None)


# Code that stores at the stack pointer and moves it down, for ever.
GROWING = {"x86_64": "50ebfd", "i386": "50ebfd", "aarch64": "e00f1ff8ffffff17", "riscv64": "411102e06ff0dfff"}


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_needs_more_memory_than_there_is_ends_with_a_message(isa, tmp_path):
    path = tmp_path / "program"
    path.write_bytes(elf_program(isa, bytes.fromhex(GROWING[isa])))
    path.chmod(0o755)
    with pytest.raises(GuestError, match="MiB of the guest's memory are in use"):
        LinuxGuest(ISAS[isa], Program(str(path)), ram=1 << 20).run(1_000_000_000)


@pytest.mark.parametrize("text", ["0", "1k", "x", "1000g", ""])
def test_a_size_that_no_guest_has_is_refused_in_one_line(text):
    with pytest.raises(UsageError, match=f"-x ram={text}: expected a size from 16m to 64g"):
        parse_arguments(["-x", f"ram={text}", "-c", "x"])
