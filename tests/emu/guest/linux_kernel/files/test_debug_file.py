"""The debug file of a kernel is found by its build identifier, or by its name and the same identifier."""

from __future__ import annotations

import shutil
import subprocess
from types import SimpleNamespace

import pytest

from emu.elf import debug_files
from emu.elf.file import ElfFile
from emu.guest.linux_kernel.files.debug_file import kernel_source

ADDRESS, RELEASE, IDENTIFIER = 0xFFFFFFFF81000000, "6.12.1-test", "c0ffee0123"
PLACES = (
    f".build-id/{IDENTIFIER[:2]}/{IDENTIFIER[2:]}.debug",
    f"boot/vmlinux-{RELEASE}",
    f"lib/modules/{RELEASE}/vmlinux",
)
# A note that stands before the one with the identifier: the name, no content, type 1.
XEN = bytes.fromhex("04000000 00000000 01000000") + b"Xen\0"
PROGRAM = """\
void leaf(void)
{
    __asm__ volatile("nop");
}
"""


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory):
    """A file with DWARF at a kernel's addresses."""
    compiler = shutil.which("x86_64-linux-gnu-gcc")
    if compiler is None:
        pytest.skip("gcc for x86-64 is not installed")
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "sched.c").write_text(PROGRAM)
    placed = f"-Wl,-Ttext={ADDRESS:#x},-e,leaf,--build-id=0x{IDENTIFIER},-z,max-page-size=4096"
    flags = [
        "-g",
        "-O1",
        "-ffreestanding",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-fno-asynchronous-unwind-tables",
        placed,
    ]
    subprocess.run([compiler, *flags, "-o", "vmlinux", "sched.c"], cwd=folder, check=True)
    return folder / "vmlinux"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(debug_files, "_folders", [tmp_path])
    return tmp_path


def facts(notes):
    """A kernel with these notes."""
    content = XEN + notes
    image = SimpleNamespace(release=RELEASE)
    return SimpleNamespace(image=image, between=lambda *_: range(1), content=lambda _: content)


@pytest.mark.parametrize("place", PLACES)
def test_the_debug_file_tells_the_lines_of_the_kernel(vmlinux, folder, place):
    kernel = facts(ElfFile(vmlinux).notes())
    assert kernel_source(kernel) is None
    (folder / place).parent.mkdir(parents=True)
    shutil.copy(vmlinux, folder / place)
    (frame,) = kernel_source(kernel).frames(ADDRESS)
    assert str(frame.line).startswith("sched.c:")
    assert not kernel_source(kernel).frames(ADDRESS + 0x10000)


def test_the_debug_file_of_another_kernel_is_not_used(vmlinux, folder):
    path = folder / "boot" / f"vmlinux-{RELEASE}"
    path.parent.mkdir()
    shutil.copy(vmlinux, path)
    assert kernel_source(facts(ElfFile(vmlinux).notes().replace(b"\xc0\xff", b"\xc0\xfe"))) is None
    assert kernel_source(facts(b"")) is None
    path.write_bytes(b"not an ELF file")
    assert kernel_source(facts(ElfFile(vmlinux).notes())) is None
