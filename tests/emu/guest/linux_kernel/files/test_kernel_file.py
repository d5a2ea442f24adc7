"""A kernel's file as an ELF image."""

import gzip

import pytest

from emu.elf.file import ElfError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.files.image_file import kernel_of
from emu.guest.linux_kernel.files.kernel_file import KernelFile, open_image
from emu.isa import ISAS
from emu.support.words import BadAddressError
from tests.emu.guest.linux_kernel.small_kernels import BASES, FUNCTIONS, SIZE, TEXT, small_kernel


@pytest.fixture(params=list(BASES))
def isa(request):
    return request.param


@pytest.fixture
def path(tmp_path, isa):
    place = tmp_path / "vmlinuz"
    place.write_bytes(small_kernel(isa))
    return place


def test_the_functions_are_those_of_kallsyms(path, isa):
    image = open_image(path)
    assert isinstance(image, KernelFile)
    assert image.isa is ISAS[isa]
    names = [one.name for one in image.functions]
    assert names == ["_stext", *list(FUNCTIONS[isa])[1:]]  # two symbols at one address: the first
    assert image.functions[1].value == BASES[isa][0] + TEXT + SIZE


def test_ftraces_pads_and_returns_are_as_boot_makes_them(path, isa):
    image = open_image(path)
    made = {
        "riscv64": "1300000013000000 4111 4101 8280",
        "aarch64": "e9031eaa1f2003d5 3f2303d5 bf2303d5 c0035fd6",
        "x86_64": "f30f1efa 0f1f440000 55 5d c3cccccccc",
    }[isa]
    expected = bytes.fromhex(made)
    assert image.code(image.functions[0])[: len(expected)] == expected


def test_only_the_text_can_be_read(path):
    image = open_image(path)
    text = image.functions[0].value
    assert len(image.read(text, 16)) == 16
    with pytest.raises(BadAddressError):
        image.read(text - 1, 1)


def test_a_compressed_kernel_is_unpacked(path, isa):
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert open_image(path, ISAS[isa]).isa is ISAS[isa]


def test_a_kernel_of_another_isa_is_refused(path, isa):
    other = ISAS["riscv64" if isa == "aarch64" else "aarch64"]
    with pytest.raises(ElfError, match=f"a kernel for {ISAS[isa].title}, but {other.title} was asked for"):
        open_image(path, other)


def test_a_stored_kernel_is_found_by_its_file(monkeypatch, tmp_path, isa):
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path))
    store.keep(kernel_of(small_kernel(isa), "it"), b"busybox", "made here")
    image = open_image(store.path_of(ISAS[isa]))
    assert isinstance(image, KernelFile)
    assert len(image.functions) == len(FUNCTIONS[isa])
    with pytest.raises(ElfError, match="was asked for"):
        open_image(store.path_of(ISAS[isa]), ISAS["i386"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an ELF file"),
        (b"MZ\0\0zimg" + bytes(100), "damaged: its compressed part is empty"),
        (b"MZ\0\0zimg\x10\0\0\0\x10\0\0\0" + bytes(100), r"unknown compression \(00 00 00 00\); unpack it first"),
        (gzip.compress(b"text", mtime=0), "not a Linux kernel"),
        (gzip.compress(b"text", mtime=0)[:-4], "cannot be unpacked"),
        (bytes(56) + b"ARM\x64" + b"Linux version 6.1 (x)\0", "it has no kallsyms"),
    ],
)
def test_other_files_are_refused_on_one_line(tmp_path, content, message):
    path = tmp_path / "vmlinuz"
    path.write_bytes(content)
    with pytest.raises(ElfError, match=message) as caught:
        open_image(path)
    assert "\n" not in str(caught.value)
