"""Page tables that machine code walks: it finds what Python's walk finds, and nothing else."""

import ctypes
import random
import struct

import pytest

pytest.importorskip("llvmlite")

from emu.engine.hits.walk_code import write_walk
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.native.builder import Module
from emu.native.link import Linked

PAGES = 24
PAGE = 4096
ISAS_BY_NAME = {name: isa for name, isa in ISAS.items() if isa.paging.tables is not None}
ISAS_BY_NAME["aarch64 of a Linux kernel"] = BOARDS["aarch64"].isa
every_isa = pytest.mark.parametrize("isa", ISAS_BY_NAME.values(), ids=ISAS_BY_NAME)


def walker(isa, ram):
    module = Module()
    start = ctypes.addressof(ctypes.c_char.from_buffer(ram))
    write_walk(module.function("walk", 3), isa.paging.tables, module.symbol("ram"), module.symbol("end"), isa.paging)
    linked = Linked(module.compiled("test"), {"ram": start, "end": start + len(ram)})
    call = ctypes.CFUNCTYPE(*4 * [ctypes.c_uint64])(linked.address("walk"))

    def walk(root, address, writing=0):
        found = call(root, address, writing)
        return found - start if found else None

    walk.linked = linked
    return walk


def entry_to(isa, page, random_):
    """An entry that names a page of the memory, or one behind it, with random other bits."""
    tables = isa.paging.tables
    bits = (random_.getrandbits(64) | (tables.valid if random_.random() < 0.9 else 0)) & ~tables.frame_mask
    if random_.random() < 0.6:  # names a table
        bits = bits & ~tables.leaf_mask if tables.leaf_set else bits | tables.leaf_mask
    return bits | (page * PAGE >> tables.frame_shift & tables.frame_mask)


@every_isa
def test_random_tables_are_walked_as_python_walks_them(isa):
    random_ = random.Random(f"walk {isa.name}")  # noqa: S311  (nothing is secret)
    ram = bytearray(PAGES * PAGE)
    for place in range(0, len(ram), 8):
        struct.pack_into("<Q", ram, place, entry_to(isa, random_.randrange(PAGES + 2), random_))
    walk, found, entry = walker(isa, ram), 0, 0
    written = 0

    def word(address):
        nonlocal entry
        entry = struct.unpack_from("<Q", ram, address)[0] if address + 8 <= len(ram) else 0
        return entry

    for _ in range(3000):
        root = isa.paging.root(random_.randrange(1, PAGES) * PAGE)
        address = random_.getrandbits(8 * isa.word) & ~7
        expected = isa.paging.translate(word, root, address)
        if expected is not None and expected + 8 > len(ram):
            expected = None
        assert walk(root, address) == expected
        found += expected is not None
        if entry & isa.paging.writable_mask != isa.paging.writable:
            expected = None
        assert walk(root, address, 1) == expected
        written += expected is not None
    assert found > written > 20


@every_isa
def test_without_page_tables_nothing_is_mapped(isa):
    assert walker(isa, bytearray(PAGE))(0, 0x100) is None
