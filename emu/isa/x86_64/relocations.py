"""Relocations of x86-64 (System V ABI, AMD64 supplement, section 4.4)."""

from __future__ import annotations

from emu.isa.relocations import Relocation, Relocations, absolute, entry_relative, relative, word, wrapping

_SIGNED = word(4, signed=True)

RELOCATIONS = Relocations(
    {
        1: Relocation("R_X86_64_64", absolute, wrapping(8)),
        2: Relocation("R_X86_64_PC32", relative, _SIGNED),
        4: Relocation("R_X86_64_PLT32", relative, _SIGNED),
        9: Relocation("R_X86_64_GOTPCREL", entry_relative, _SIGNED, entry=True),
        10: Relocation("R_X86_64_32", absolute, word(4, signed=False)),
        11: Relocation("R_X86_64_32S", absolute, _SIGNED),
        12: Relocation("R_X86_64_16", absolute, word(2)),
        13: Relocation("R_X86_64_PC16", relative, word(2, signed=True)),
        14: Relocation("R_X86_64_8", absolute, word(1)),
        15: Relocation("R_X86_64_PC8", relative, word(1, signed=True)),
        24: Relocation("R_X86_64_PC64", relative, wrapping(8)),
        26: Relocation("R_X86_64_GOTPC32", lambda r: r.table + r.addend - r.address, _SIGNED),
        41: Relocation("R_X86_64_GOTPCRELX", entry_relative, _SIGNED, entry=True),
        42: Relocation("R_X86_64_REX_GOTPCRELX", entry_relative, _SIGNED, entry=True),
    },
    ignored=frozenset({0}),
)
