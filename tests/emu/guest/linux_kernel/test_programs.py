"""Reading of processes' mappings and files, without a kernel."""

import struct

import pytest

from emu.displaced.plans import Plan, Set
from emu.engine.memory.access import Access
from emu.guest.linux_kernel.areas import Area, Areas
from emu.guest.linux_kernel.kernel_calls import error_of
from emu.guest.linux_kernel.machine.initramfs import runs_in_shell
from emu.guest.linux_kernel.program_cpu import ProgramCpu, ProgramFrame
from emu.isa import ISAS
from emu.support import cpio


def test_a_file_of_an_archive_is_found():
    files = {
        "bin": cpio.directory(),
        "bin/one": cpio.regular(b"12345"),
        "l": cpio.link("bin/one"),
        "z": cpio.regular(b""),
    }
    archive = cpio.archive(files)
    assert cpio.find(archive, "bin/one") == b"12345"
    assert cpio.find(archive, "z") == b""
    assert [cpio.find(archive, name) for name in ("bin", "l", "none", "TRAILER!!!")] == [None] * 4


LINKED = {"bin/busybox": cpio.regular(b"b"), "bin/ls": cpio.link("/bin/busybox"), "usr/bin/zoo": cpio.regular(b"z")}


@pytest.mark.parametrize(
    ("command", "more", "inside"),
    [
        ("ls -l", {}, True),
        ("nothing", {}, True),
        ("", {}, True),
        ("zoo markers", {}, False),
        ("/bin/ls", {}, False),
        ("ls -l", {"bin/ls": cpio.regular(b"l")}, False),
        ("ls -l", {"bin/sh": cpio.link("dash")}, False),
        ("ls -l", {"bin/sh": cpio.link("busybox")}, True),
    ],
)
def test_busyboxs_shell_may_run_its_own_programs_without_executing_them(command, more, inside):
    assert runs_in_shell(cpio.archive(LINKED | more), command) is inside


@pytest.mark.parametrize(
    ("result", "number"),
    [(0, 0), (0xFFFF888000001000, 0), (2**64 - 22, 22), (2**32 - 524, 524), (2**64 - 4096, 0), (4095, 0)],
)
def test_an_error_is_a_small_negative_int_or_pointer(result, number):
    assert error_of(result) == number


def test_a_plan_is_carried_out_on_a_copy_of_the_registers():
    isa = ISAS["riscv64"]
    cpu = ProgramCpu(
        isa, {"pc": 0x1000, "ra": 0x2000, "a0": 7, "sp": 0x3000}, lambda _address, _size: b"\x05" + bytes(7)
    )
    copy = cpu.copy()
    ProgramFrame(copy).execute(Plan((Set("pc", "ra"),)), 0x1000)
    assert (cpu.pc, copy.pc) == (0x1000, 0x2000)
    assert ProgramFrame(cpu).arguments()[0] == 7
    assert ProgramFrame(cpu).stack_word(0) == 5


# -- a maple tree


class Memory:
    """The memory of a kernel, as far as `Areas` reads it."""

    def __init__(self):
        self.data = bytearray(0x4000)

    def load(self, address, size):
        return int.from_bytes(self.read(address, size), "little")

    def read(self, address, size):
        return bytes(self.data[address - BASE : address - BASE + size])

    def write(self, address, data):
        self.data[address - BASE : address - BASE + len(data)] = data


class Offsets:
    """BTF of structures whose members are words in the order in which they are asked for."""

    def __init__(self):
        self.known = {}

    def offset(self, name, member):
        members = self.known.setdefault(name, [])
        members.append(member)
        return 8 * (len(members) - 1)


BASE = 0xFFFF_8880_0000_0000
MM, NODES, VMAS, STRINGS = BASE, BASE + 0x1000, BASE + 0x2000, BASE + 0x3000
LEAF, RANGE, ARANGE = 1, 2, 3


def words(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def node(kind, pivots, slots):
    count, at = (9, 80) if kind == ARANGE else (15, 128)
    data = bytearray(256)
    data[8 : 8 + 8 * len(pivots)] = words(*pivots)
    data[at : at + 8 * len(slots)] = words(*slots)
    assert len(pivots) <= count
    return bytes(data)


def pointer(address, kind):
    return address | kind << 3 | 4 | 2


@pytest.mark.parametrize("inner", [ARANGE, RANGE])
def test_mappings_are_found_in_a_maple_tree(inner):
    memory, btf = Memory(), Offsets()
    areas = Areas(memory, btf)
    vmas = [VMAS + 0x40 * number for number in range(3)]
    file, dentry, root_dentry, inode = VMAS + 0x200, VMAS + 0x240, VMAS + 0x280, VMAS + 0x300
    for number, vma in enumerate(vmas):
        memory.write(
            vma, words(0x1000 * number, 0x1000 * number + 0x800, 1 | 4 * (number == 0), number, file * (number < 2))
        )
    memory.write(file, words(inode, dentry))
    memory.write(dentry, words(STRINGS, root_dentry))
    memory.write(root_dentry, words(STRINGS + 8, root_dentry))
    memory.write(STRINGS, b"prog\0")
    first, second, top = NODES, NODES + 0x100, NODES + 0x200
    memory.write(first, node(LEAF, [0x7FF, 0xFFF, 0x17FF], [vmas[0], 0, vmas[1], 0]))
    memory.write(second, node(LEAF, [0x1FFF, 0x27FF, 2**64 - 1], [0, vmas[2], 0]))
    memory.write(top, node(inner, [0x1FFF], [pointer(first, LEAF), pointer(second, LEAF)]))
    memory.write(MM, words(pointer(top, inner), file))
    assert areas.of(MM) == [
        Area(0, 0x800, Access.READ | Access.EXECUTE, inode, 0, "/prog"),
        Area(0x1000, 0x1800, Access.READ, inode, 0x1000, "/prog"),
        Area(0x2000, 0x2800, Access.READ, None, 0, ""),
    ]
    assert (areas.program(MM), areas.executable(MM)) == ("/prog", inode)


def test_one_mapping_needs_no_node_and_no_mapping_is_an_empty_list():
    memory = Memory()
    areas = Areas(memory, Offsets())
    assert areas.of(MM) == []
    memory.write(VMAS, words(0x5000, 0x6000, 3, 0, 0))
    memory.write(MM, words(VMAS, 0))
    assert areas.of(MM) == [Area(0x5000, 0x6000, Access.READ | Access.WRITE, None, 0, "")]
