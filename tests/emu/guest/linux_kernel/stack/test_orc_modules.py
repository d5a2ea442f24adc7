"""The ORC tables of modules, for Python and for machine code."""

import ctypes
import struct
from dataclasses import replace

from emu.guest.linux_kernel.files.tables import Placed
from emu.guest.linux_kernel.modules import Module, OrcPlace
from emu.guest.linux_kernel.stack.orc_modules import ModuleOrc, OrcRow

TEXT, IPS, ENTRIES = 0xFFFFFFFFC0000000, 0xFFFFFFFFC0010000, 0xFFFFFFFFC0020000
SIZE = 6
STARTS = (TEXT, TEXT + 0x10, TEXT + 0x40)


class Memory:
    """An engine whose memory has two tables."""

    def __init__(self):
        distances = (start - IPS - 4 * number for number, start in enumerate(STARTS))
        self._data = {IPS: struct.pack("<3i", *distances), ENTRIES: b"first!second" + b"third!"}

    def read(self, address, size):
        assert len(self._data[address]) == size
        return self._data[address]


class Loaded:
    """The modules that are loaded."""

    def __init__(self, *modules):
        self.modules = modules

    def at(self, address):
        return next((one for one in self.modules if address in one.text), None)


def module(start=TEXT, **changes):
    place = OrcPlace(0x5000, IPS, ENTRIES, len(STARTS))
    made = Module("mine", range(start, start + 0x100), (), lambda _table: Placed(0, b""), None, {}, {}, place)
    return replace(made, **changes)


def test_the_entry_of_an_address_is_the_last_that_does_not_begin_after_it():
    tables = ModuleOrc(Memory(), Loaded(module()), SIZE)
    found = [tables.entry(TEXT + offset) for offset in (0, 0xF, 0x10, 0x3F, 0x40, 0xFF, 0x100)]
    assert found == [b"first!", b"first!", b"second", b"second", b"third!", b"third!", None]


def test_rows_of_machine_code_have_the_newest_tables():
    loaded = Loaded(module())
    tables = ModuleOrc(Memory(), loaded, SIZE)
    assert tables.words.count == 0
    tables.entry(TEXT)
    row = OrcRow.from_address(tables.words.rows)
    assert (tables.words.count, row.start, row.size, row.pointer, row.value) == (1, TEXT, 0x100, 0x5000, IPS)
    assert [*(ctypes.c_uint64 * 3).from_address(row.ips)] == list(STARTS)
    assert ctypes.string_at(row.entries, SIZE) == b"first!"
    loaded.modules = (module(name="other", orc=OrcPlace(0x6000, IPS, ENTRIES, len(STARTS))),)
    tables.entry(TEXT)
    assert (tables.words.count, row.pointer) == (1, 0x6000)


def test_a_module_without_tables_has_no_entries():
    tables = ModuleOrc(Memory(), Loaded(module(orc=None)), SIZE)
    assert tables.entry(TEXT) is None
    assert tables.words.count == 0
