"""Files of modules as ELF images.

The object files stand for modules: a section that they have is taken for the one that every module
has.
"""

import bz2
import gzip
import lzma
import shutil
import subprocess

import pytest

from emu.elf.file import ElfError
from emu.guest.function import FunctionGuest
from emu.guest.kernel.boot.images import built
from emu.guest.linux_kernel.files import module_file
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.guest.linux_kernel.files.module_file import ModuleFile
from emu.guest.linux_kernel.files.tables import Placed, Table, addresses
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS


@pytest.fixture(autouse=True)
def _objects_are_modules(monkeypatch):
    monkeypatch.setattr(module_file, "_MARK", ".text")


def _zstd(data):
    zstd = shutil.which("zstd")
    if zstd is None:
        pytest.skip("zstd is not installed")
    return subprocess.run([zstd, "-c"], input=data, capture_output=True, check=True).stdout


def _object(isa):
    return built(ISAS[isa]) / "objects" / "links-pic.o"


@pytest.mark.parametrize("isa", BOARDS)
def test_relocations_are_applied_at_an_address_of_modules(isa):
    image = open_image(_object(isa))
    assert isinstance(image, ModuleFile)
    assert [one.name for one in image.functions] == ["compute"]
    assert image.functions[0].value >= BOARDS[isa].modules >= ISAS[isa].kernel_start
    assert set(image.externs) == {"helper", "length", "shared", "absent"}
    guest = FunctionGuest(ISAS[isa], image)
    found = [guest.call(case, 1, function="compute") & 0xFFFF_FFFF for case in (1, 2, 5)]
    assert found == [2, ord("b"), 9]  # its table, a pointer in its data, its own counter


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, _zstd])
def test_modules_are_unpacked(tmp_path, pack):
    path = tmp_path / "links.ko.packed"
    path.write_bytes(pack(_object("aarch64").read_bytes()))
    assert [one.name for one in open_image(path).functions] == ["compute"]
    with pytest.raises(ElfError, match="made for aarch64, not riscv64"):
        open_image(path, ISAS["riscv64"])


def test_a_module_of_an_isa_without_linux_kernels_is_refused():
    with pytest.raises(ElfError, match="a Linux module for i386; there are probes for kernels of RISC-V, AArch64"):
        open_image(_object("i386"))


def test_tables_are_the_sections_of_the_module():
    image = open_image(_object("x86_64"))
    image.sections[".static_call_sites"] = Placed(0x1000, bytes.fromhex("f0ffffff 00000000 10000000 00000000 00"))
    assert list(addresses(image.table, Table.STATIC_CALLS)) == [0xFF0, 0x1018]
    assert list(addresses(image.table, Table.JUMP_LABELS)) == []
