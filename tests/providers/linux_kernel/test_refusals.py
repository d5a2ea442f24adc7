"""Places where Linux allows no kprobe, read from a kernel's tables."""

import struct

from emu.guest.linux_kernel.files.tables import Placed
from emu.guest.linux_kernel.kallsyms import Symbols
from providers.linux_kernel.refusals import Blacklist, reserved

BASE = 0xFFFFFFFF81000000


class Tables:
    """The tables of a kernel's image, by the symbols of their starts."""

    def __init__(self, **tables):
        self._tables = {name: (BASE + 0x1000 * number, data) for number, (name, data) in enumerate(tables.items())}

    def table(self, table):
        return Placed(*self._tables.get(table.value.start, (0, b"")))


def test_jump_labels_and_static_calls_are_reserved():
    facts = Tables(
        __start___jump_table=struct.pack("<iiq", -0x100, 0, 0) + struct.pack("<iiq", 0x20, 0, 0),
        __start_static_call_sites=struct.pack("<ii", -0x800, 0),
    )
    assert reserved(facts.table) == {BASE - 0x100, BASE + 0x10 + 0x20, BASE + 0x1000 - 0x800}
    assert reserved(Tables().table) == frozenset()


def test_a_part_of_a_forbidden_function_is_forbidden():
    symbols = Symbols([(0x1000, "thandle"), (0x2000, "thandle.part.0"), (0x3000, "tother.part.0"), (0x4000, "tend")])
    blacklist = Blacklist([(0x1000, 0x1100)], symbols)
    assert [address in blacklist for address in (0x0FFF, 0x1000, 0x10FF, 0x1100)] == [False, True, True, False]
    assert 0x2010 in blacklist
    assert 0x3010 not in blacklist
    assert 0x2010 not in Blacklist([(0x1000, 0x1100)])


def test_areas_that_overlap_are_joined():
    assert Blacklist([(5, 9), (1, 4), (4, 6)]).areas() == [(1, 9)]
