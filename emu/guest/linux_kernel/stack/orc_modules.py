"""The ORC tables of modules, copied from the kernel's memory for Python and for machine code.

A table does not change while its module is loaded.  Machine code finds the tables by rows, and
checks that struct module still has the pointer of the table; Python looks for the module again.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from typing import Final

from emu.engine.engine import Engine
from emu.guest.linux_kernel.modules import Module, Modules
from emu.native.block import Block
from emu.support.words import WORD_MASK

# Modules whose tables machine code knows at a time.
ROWS: Final = 64
_IP: Final = struct.Struct("<i")


class OrcRow(Block):
    """The table of one module."""

    start: int
    """The first address of its code."""
    size: int
    ips: int
    """This process's address of the first addresses of the entries, words by address."""
    entries: int
    """This process's address of the entries."""
    count: int
    pointer: int
    """The kernel's address of the pointer to the table, and its value."""
    value: int


class OrcRows(Block):
    """The rows that are used, the newest last."""

    rows: int
    """This process's address of the first `OrcRow`."""
    count: int


class ModuleOrc:
    """The ORC tables of modules; `entry_size` is that of an entry of .orc_unwind."""

    def __init__(self, engine: Engine, modules: Modules, entry_size: int) -> None:
        self._engine = engine
        self._modules = modules
        self._entry_size = entry_size
        self._rows = (OrcRow * ROWS)()
        self.words = OrcRows(ctypes.addressof(self._rows), 0)
        self._known: dict[int, tuple[Module, array[int], ctypes.Array[ctypes.c_char]]] = {}
        """By address of the code."""

    def entry(self, ip: int) -> bytes | None:
        """Return the entry for an address of a module's code; None: no module with a table has it."""
        module = self._modules.at(ip)
        if module is None or module.orc is None:
            return None
        _, ips, entries = self._table(module)
        low, high = 0, len(ips)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if ips[middle] <= ip else (low, middle)
        size = self._entry_size
        return entries.raw[size * (low - 1) : size * low] if low else None

    def _table(self, module: Module) -> tuple[Module, array[int], ctypes.Array[ctypes.c_char]]:
        known = self._known.get(module.text.start)
        if known is None or known[0] is not module:
            known = self._known[module.text.start] = self._copied(module)
            self._show()
        return known

    def _copied(self, module: Module) -> tuple[Module, array[int], ctypes.Array[ctypes.c_char]]:
        table = module.orc
        assert table is not None
        distances = _IP.iter_unpack(self._engine.read(table.ips, _IP.size * table.entry_count))
        ips = (table.ips + _IP.size * number + one & WORD_MASK for number, (one,) in enumerate(distances))
        entries = self._engine.read(table.entries, self._entry_size * table.entry_count)
        return module, array("Q", ips), ctypes.create_string_buffer(entries, len(entries))

    def _show(self) -> None:
        """Write the rows of machine code: the newest tables."""
        newest = list(self._known.values())[-ROWS:]
        for row, (module, ips, entries) in zip(self._rows, newest, strict=False):
            assert module.orc is not None
            row.start, row.size = module.text.start, len(module.text)
            row.ips, row.entries, row.count = ips.buffer_info()[0], ctypes.addressof(entries), len(ips)
            row.pointer, row.value = module.orc.pointer, module.orc.ips
        self.words.count = len(newest)
