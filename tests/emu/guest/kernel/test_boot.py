"""How the kernel guest starts: its boot map, and the initial file system."""

import subprocess
from shutil import which

import pytest

from emu.guest.kernel.boot import initrd
from emu.guest.kernel.guest import KernelGuest
from emu.isa import ISAS
from emu.support import cpio

isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)

LARGE_PAGE = 1 << 21
# The bit of a page table's entry, and its value if the kernel may not execute the page.
NOT_EXECUTABLE = {
    "x86_64": (1 << 63, 1 << 63),
    "i386": (1 << 63, 1 << 63),
    "aarch64": (1 << 53, 1 << 53),
    "riscv64": (1 << 3, 0),
}
FILES = {"etc/rc": b"12345", "bin/a": b"abc", "etc/motd": b"", "bin/program": b"x" * 20}


@isas
def test_only_the_text_is_executable_in_the_boot_map(isa):
    """Unicorn leaves the fast path at each store to a page that may hold code."""
    guest = KernelGuest(isa)
    engine, kmain = guest.engine, guest.image.symbol("kmain").value
    for _ in range(100):
        if engine.pc == kmain:
            break
        engine.step()
    assert engine.pc == kmain
    root = engine.read_register(isa.registers.kernel_root)
    mask, forbidden = NOT_EXECUTABLE[isa.name]
    read = []

    def entry(address):
        read.append(engine.memory.physical_word(address))
        return read[-1]

    executable = []
    for physical in range(0, engine.memory.size, LARGE_PAGE):
        assert isa.paging.translate(entry, root, isa.kernel_base + physical) == physical
        if read[-1] & mask != forbidden:
            executable.append(physical)
    assert executable == [LARGE_PAGE]


def test_every_content_of_the_initrd_can_be_copied_by_words():
    packed = initrd.archive(FILES)
    found = {path.decode(): content for path, _mode, content in cpio.entries(packed)}
    assert {path: content for path, content in found.items() if path in FILES} == FILES
    assert {packed.index(content) % 8 for content in FILES.values() if content} == {0}


@pytest.mark.skipif(which("cpio") is None, reason="cpio(1) is not installed")
def test_cpio_reads_the_initrd(tmp_path):
    subprocess.run(["cpio", "-id", "--quiet"], input=initrd.archive(FILES), cwd=tmp_path, check=True)
    assert {path: (tmp_path / path).read_bytes() for path in FILES} == FILES
