"""Tables by address: machine code finds what Python has written."""

from __future__ import annotations

import ctypes
import random

import pytest

from emu.engine.hits.address_table import MULTIPLIER, Addressed, AddressTable, TableHeader
from emu.native import available

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")


class Item(Addressed):
    owner: int


def _searches():
    """Return find(header, address), and find_of(header, address, owner)."""
    from emu.engine.hits.address_table import return_found
    from emu.native.builder import Module
    from emu.native.link import Linked

    module = Module()
    f = module.function("find", 2)
    return_found(f, *f.parameters)
    g = module.function("find_of", 3)
    header, address, owner = g.parameters
    return_found(g, header, address, lambda item: g.eq(g.load(item, Item.offset("owner")), owner))
    linked = Linked(module.compiled("test"))
    words = [ctypes.c_uint64] * 3
    find = ctypes.CFUNCTYPE(ctypes.c_uint64, *words[:2])(linked.address("find"))
    find_of = ctypes.CFUNCTYPE(ctypes.c_uint64, *words)(linked.address("find_of"))
    return linked, find, find_of


def test_every_block_is_found_while_the_table_grows_and_after_replacement():
    _linked, find, find_of = _searches()
    chosen, header = random.Random(5), TableHeader()  # noqa: S311  the same in every run
    table = AddressTable(header, 4)
    for number in range(300):
        at, owner = chosen.randrange(0, 1 << 64, 8) if number % 3 else 0x4000 + number, chosen.randrange(3)
        for one in (owner, owner + 1):
            table.set((at, one), Item(at, one))
        table.set((at, owner), Item(at, owner))
    for (at, owner), item in table.blocks.items():
        assert find_of(header.address, at, owner) == item.address
        assert Item.from_address(find(header.address, at)).at == at
        assert not find(header.address, at + 1)
        assert not find_of(header.address, at, 99)
    # A block that was replaced takes no second place.
    assert sum(map(bool, table.places)) == len(table.blocks)


def test_blocks_that_want_one_place_are_found_around_the_end():
    _linked, find, _ = _searches()
    header = TableHeader()
    table = AddressTable(header, 16)
    last = [at for at in range(0, 100_000, 8) if (at * MULTIPLIER & (1 << 64) - 1) >> 60 == 15][:5]
    for at in last:
        table.set(at, Item(at, 1))
    assert [find(header.address, at) for at in last] == [table.blocks[at].address for at in last]
    table.clear()
    assert not any(find(header.address, at) for at in last)
