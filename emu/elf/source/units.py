"""The compilation units of a file, by address.

Source: DWARF 5, sections 2.17 (code addresses) and 6.1.2 (`.debug_aranges`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from emu.elf.file import ElfFile

# A compilation unit of pyelftools, which has no types for what attributes hold.
Unit = Any
# An entry of a compilation unit (DIE).
Entry = Any


class Units:
    """The compilation units of one file.  Damaged ones are passed over."""

    def __init__(self, file: ElfFile) -> None:
        self._file = file

    @cached_property
    def dwarf(self) -> Any:
        """The file's DWARF, as pyelftools reads it; None: there is none that can be read."""
        try:
            return self._file.elf.get_dwarf_info() if self._file.has_dwarf else None
        except Exception:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
            return None

    def all(self) -> Iterator[Unit]:
        """Yield all units in their order; a damaged one ends them."""
        if self.dwarf is None:
            return
        try:
            yield from self.dwarf.iter_CUs()
        except Exception:  # noqa: BLE001  (as above)
            return

    def at(self, address: int) -> Unit | None:
        """Return the unit whose code is at an address, None if no unit says so."""
        try:
            if self._table is not None and self._table.entries:
                offset = self._table.cu_offset_at_addr(address)
                if offset is not None:
                    return self.dwarf.get_CU_at(offset)
        except Exception:  # noqa: BLE001  (as above)
            return None
        return next((unit for code, unit in self._others if any(address in part for part in code)), None)

    @cached_property
    def _table(self) -> Any:
        """`.debug_aranges`, which not every compiler writes."""
        try:
            return self.dwarf.get_aranges() if self.dwarf is not None else None
        except Exception:  # noqa: BLE001  (as above)
            return None

    @cached_property
    def _others(self) -> list[tuple[list[range], Unit]]:
        """The units that the table does not have, with their code."""
        known = {entry.info_offset for entry in self._table.entries} if self._table is not None else set()
        found = []
        for unit in self.all():
            if unit.cu_offset not in known:
                try:
                    found.append((code_of(unit.get_top_DIE()), unit))
                except Exception:  # noqa: BLE001, S112  (as above)
                    continue
        return found


def code_of(entry: Entry) -> list[range]:
    """Return the addresses of an entry's code: none, if it has none."""
    unit, attributes = entry.cu, entry.attributes
    if (listed := attributes.get("DW_AT_ranges")) is not None:
        return _listed(unit, listed.value)
    low, high = attributes.get("DW_AT_low_pc"), attributes.get("DW_AT_high_pc")
    if low is None or high is None:
        return []
    # An address in DWARF 2 and 3; a distance in later versions, unless its form is that of an address.
    is_address = high.form in {"DW_FORM_addr", "DW_FORM_addrx"}
    return [range(low.value, high.value if is_address else low.value + high.value)]


def _listed(unit: Unit, offset: int) -> list[range]:
    lists = unit.dwarfinfo.range_lists()
    start = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = start.value if start is not None else 0
    found = []
    for part in lists.get_range_list_at_offset(offset, unit):
        if hasattr(part, "base_address"):  # a BaseAddressEntry; importing its class takes long
            base = part.base_address
            continue
        first = 0 if part.is_absolute else base
        found.append(range(first + part.begin_offset, first + part.end_offset))
    return found
