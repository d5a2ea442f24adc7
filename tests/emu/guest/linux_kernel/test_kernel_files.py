"""Kernels' files, symbols and types: small ones made here, and files that are none."""

import bz2
import gzip
import lzma
import shutil
import struct
import subprocess

import pytest

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.btf import Btf, BtfError, Kind
from emu.guest.linux_kernel.files.image_file import kernel_of, read_kernel
from emu.guest.linux_kernel.kallsyms import Symbols, read_kallsyms
from trapline.d.types.rules import size_of
from trapline.d.types.types import type_name
from trapline.types.btf import BtfTypes

VERSION = b"Linux version 6.1.2-test (someone)\0"


def flat(magic):
    return bytes(56) + magic + bytes(4) + VERSION


def elf(machine=62, elf_class=2, segments=((0x1000000, VERSION),)):
    """An ELF file with segments at physical addresses."""
    header = (
        b"\x7fELF"
        + bytes((elf_class, 1, 1))
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x1000040, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    )
    headers, contents = b"", b""
    at = len(header) + 56 * len(segments)
    for address, content in segments:
        headers += struct.pack("<IIQQQQQQ", 1, 5, at + len(contents), 0, address, len(content), len(content), 1)
        contents += content
    return header + headers + contents


def bzimage(payload):
    data = bytearray(0x1000)
    data[0x1F1] = 4
    data[0x201] = 0x66
    data[0x202:0x206] = b"HdrS"
    start = 5 * 512
    struct.pack_into("<II", data, 0x248, 0x40, len(payload))
    return bytes(data[:start]) + bytes(0x40) + payload


@pytest.mark.parametrize(("magic", "isa"), [(b"ARM\x64", "aarch64"), (b"RSC\x05", "riscv64")])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_an_image_is_known_however_it_is_compressed(magic, isa, pack):
    image = kernel_of(pack(flat(magic)), "it")
    assert (image.isa, image.release, image.data) == (isa, "6.1.2-test", flat(magic))


@pytest.mark.parametrize(("program", "options"), [("lz4", "-l"), ("lz4", "-1"), ("zstd", "-1"), ("lzop", "-1")])
def test_a_program_of_the_host_unpacks_other_formats(program, options):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    image = flat(b"ARM\x64")
    packed = subprocess.run([path, options, "-c"], input=image, capture_output=True, check=True).stdout
    assert kernel_of(packed, "it").data == image
    payload = packed + len(image).to_bytes(4, "little")  # as a kernel's makefile does it
    wrapped = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + bytes(48) + payload
    assert kernel_of(wrapped, "it").data == image
    with pytest.raises(KernelFileError, match=rf"it: cannot be unpacked \({program[:3]}.*\): damaged, or cut short"):
        kernel_of(packed[:-9], "it")


def test_a_format_whose_program_is_not_installed_names_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(KernelFileError, match=r"it: cannot be unpacked \(lz4\): install the program lz4"):
        kernel_of(b"\x02\x21\x4c\x18....", "it")


def test_a_bzimage_holds_an_elf_file():
    image = kernel_of(bzimage(lzma.compress(elf())), "it")
    assert (image.isa, image.release) == ("x86_64", "6.1.2-test")
    assert (image.base, image.entry, image.data) == (0x1000000, 0x1000040, VERSION)
    assert image.setup[0x202 - 0x1F1 :][:4] == b"HdrS"


def test_an_efi_zboot_image_holds_an_image():
    payload = gzip.compress(flat(b"ARM\x64"))
    wrapped = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + bytes(48) + payload
    assert kernel_of(wrapped, "it").isa == "aarch64"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"root:x:0:0", "it: not a Linux kernel"),
        (b"", "it: not a Linux kernel"),
        (gzip.compress(flat(b"RSC\x05"), mtime=0)[:-20], "it: cannot be unpacked"),
        (bzimage(b"????payload"), "it: unknown compression"),
        (bzimage(b"x" * 9)[:-8], "it: truncated"),
        (elf(machine=22), "it: a kernel for another CPU"),
        (elf(machine=183), "it: an ELF file for AArch64; give the kernel's Image"),
        (elf(segments=()), "without loadable segments"),
        (elf(segments=((0, b"x"), (1 << 40, b"y"))), "not a kernel"),
        (elf(segments=((0, b"no version"),)), "it contains no version string"),
        (elf()[:70], "damaged ELF file"),
    ],
)
def test_what_is_not_a_kernel_gets_one_clear_line(data, message):
    with pytest.raises(KernelFileError) as caught:
        kernel_of(data, "it")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_kernel_of_another_isa_is_refused(tmp_path):
    path = tmp_path / "Image"
    path.write_bytes(flat(b"ARM\x64"))
    with pytest.raises(KernelFileError, match="a kernel for AArch64, but RISC-V was asked for; name aarch64"):
        read_kernel(path, "riscv64")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(KernelFileError, match="none: no such file"):
        read_kernel(tmp_path / "none")


# -- kallsyms

BASE = 0xFFFFFFFF80000000


def tokens():
    """256 tokens as the kernel has them: characters for themselves, and two of the rest for more."""
    table = [bytes((code,)) if 32 < code < 127 else b"" for code in range(256)]
    table[1], table[2] = b"sys_", b"Tvfs"
    return table


def kallsyms(symbols, *, both_ways=False, base=BASE):
    """The tables of a kernel, between other bytes."""
    table = tokens()
    names, markers, offsets = bytearray(), [], []
    for number, (address, name) in enumerate(symbols):
        if number % 256 == 0:
            markers.append(len(names))
        coded = name.encode().replace(b"sys_", b"\1").replace(b"Tvfs", b"\2")
        length = bytes((len(coded),)) if len(coded) < 128 else bytes((len(coded) & 127 | 128, len(coded) >> 7))
        names += length + coded
        offsets.append((address if address < base else base - 1 - address) if both_ways else address - base)
    pad = lambda data: data + bytes(-len(data) % 8)  # noqa: E731
    starts = [sum(len(token) + 1 for token in table[:place]) for place in range(256)]
    parts = [
        struct.pack("<Q", len(symbols)),
        bytes(names),
        struct.pack(f"<{len(markers)}I", *markers),
        b"".join(token + b"\0" for token in table),
        struct.pack("<256H", *starts),
        struct.pack(f"<{len(offsets)}i", *offsets),
        struct.pack("<Q", base),
    ]
    return b"\x90" * 64 + b"".join(map(pad, parts)) + b"\xcc" * 64


SYMBOLS = [(BASE + 16 * n, f"tfunction_{n}") for n in range(700)]
SYMBOLS += [
    (BASE + 0x5000, "Tsys_read"),
    (BASE + 0x5100, "Tvfs_read"),
    (BASE + 0x5100, "talias"),
    (BASE + 0x5200, "D" + "x" * 200),
]


@pytest.mark.parametrize("both_ways", [False, True])
def test_kallsyms_are_found_by_their_shape(both_ways):
    assert read_kallsyms(kallsyms(SYMBOLS, both_ways=both_ways), "it") == SYMBOLS


def test_an_image_without_kallsyms_is_refused():
    with pytest.raises(KernelFileError, match="it: it has no kallsyms; use a kernel with CONFIG_KALLSYMS=y"):
        read_kallsyms(b"nothing" * 1000, "it")


def test_symbols_are_found_by_name_and_by_address():
    symbols = Symbols(list(SYMBOLS))
    assert symbols.address("sys_read") == BASE + 0x5000
    assert symbols.get("vfs_read").size == 0x100
    assert symbols.get("nothing") is None
    assert symbols.holding(BASE + 0x5150).name == "vfs_read"
    assert symbols.holding(BASE - 1) is None
    assert [one.name for one in symbols.between(BASE + 0x5000, BASE + 0x5200)] == ["sys_read", "vfs_read", "alias"]
    assert Symbols.undump(symbols.dump()).get("vfs_read") == symbols.get("vfs_read")


# -- BTF


def btf():
    """int, char, struct inner { int a; }, struct task { char comm[16]; struct { int pid; }; int bit:3; }."""
    strings = b"\0"
    places = {"": 0}

    def name(text):
        nonlocal strings
        if text not in places:
            places[text] = len(strings)
            strings += text.encode() + b"\0"
        return places[text]

    def entry(label, kind, size, *words, vlen=0, flag=0):
        return struct.pack(f"<III{len(words)}I", name(label), flag << 31 | kind << 24 | vlen, size, *words)

    types = b"".join(
        [
            entry("int", Kind.INT, 4, 1 << 24 | 32),
            entry("char", Kind.INT, 1, 1 << 24 | 8),
            entry("", Kind.ARRAY, 0, 2, 1, 16),
            entry("", Kind.STRUCT, 4, name("pid"), 1, 0, vlen=1),
            entry(
                "task", Kind.STRUCT, 24, name("comm"), 3, 0, 0, 4, 128, name("bit"), 1, 3 << 24 | 160, vlen=3, flag=1
            ),
            entry("", Kind.PTR, 5),
            entry("", Kind.FUNC_PROTO, 1, name("p"), 6, name("n"), 1, vlen=2),
            entry("do_it", Kind.FUNC, 7),
            entry("colour", Kind.ENUM, 4, name("red"), 0, name("blue"), 0xFFFFFFFF, vlen=2, flag=1),
            entry("task_t", Kind.TYPEDEF, 5),
        ]
    )
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings


def test_btf_tells_where_members_are():
    types = Btf(btf())
    assert len(types) == 10
    assert types.offset("task", "comm") == 0
    assert types.offset("task", "pid") == 16
    assert types.struct_size("task") == 24
    with pytest.raises(BtfError, match="struct task has no member mm"):
        types.offset("task", "mm")


@pytest.mark.parametrize("data", [b"", b"x" * 24, btf()[:-30], btf()[:2] + b"\7" + btf()[3:]])
def test_damaged_btf_is_an_error(data):
    with pytest.raises(BtfError):
        Btf(data)


def test_d_has_the_types_of_btf():
    types = BtfTypes(Btf(btf()))
    task = types.tag("struct", "task")
    assert [(member.name, member.offset, member.bits) for member in task.members] == [
        ("comm", 0, 0), ("", 128, 0), ("bit", 160, 3),
    ]  # fmt: skip
    assert task.member("pid").offset == 128
    assert (size_of(task), task.alignment) == (24, 4)
    assert [type_name(each) for each in types.function("do_it").parameters] == ["struct task *", "int"]
    assert types.tag("enum", "colour").enumerators == {"red": 0, "blue": -1}
    assert str(types.typedef("task_t")) == "task_t"
    assert types.tag("struct", "nothing") is None
