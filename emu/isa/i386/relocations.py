"""Relocations of i386 (System V ABI, Intel386 supplement, section 4.4).

The addends are in the relocated fields.
"""

from __future__ import annotations

from emu.isa.relocations import Reference, Relocation, Relocations, absolute, relative, word, wrapping


def _entry_offset(reference: Reference) -> int:
    """Return G + A - GOT: code reaches the entry through a register that holds the table."""
    return reference.entry + reference.addend - reference.table


_WORD = wrapping(4)

RELOCATIONS = Relocations(
    {
        1: Relocation("R_386_32", absolute, _WORD),
        2: Relocation("R_386_PC32", relative, _WORD),
        3: Relocation("R_386_GOT32", _entry_offset, _WORD, entry=True),
        4: Relocation("R_386_PLT32", relative, _WORD),
        9: Relocation("R_386_GOTOFF", lambda r: r.symbol + r.addend - r.table, _WORD),
        10: Relocation("R_386_GOTPC", lambda r: r.table + r.addend - r.address, _WORD),
        20: Relocation("R_386_16", absolute, word(2)),
        21: Relocation("R_386_PC16", relative, wrapping(2)),
        22: Relocation("R_386_8", absolute, word(1)),
        23: Relocation("R_386_PC8", relative, word(1, signed=True)),
        43: Relocation("R_386_GOT32X", _entry_offset, _WORD, entry=True),
    },
    ignored=frozenset({0}),
)
