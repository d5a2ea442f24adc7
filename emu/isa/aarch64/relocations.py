"""Relocations of AArch64 (ELF for the Arm 64-bit Architecture, section 5.7)."""

from __future__ import annotations

from emu.isa.relocations import Field, Reference, Relocation, Relocations, absolute, entry, relative, word, wrapping

_PAGE = ~0xFFF
_ANY = 1 << 64


def _bits(first: int, count: int, shift: int = 0, *, signed: bool = True) -> Field:
    """Return the field of `count` bits from bit `first` on, for a value without its `shift` bits."""
    mask = (1 << count) - 1
    reach = 1 << count + shift - signed
    return Field(
        4,
        lambda old, value: old & ~(mask << first) | (value >> shift & mask) << first,
        -reach if signed else 0,
        reach - 1,
        1 << shift,
    )


def _low(shift: int) -> Field:
    """Return the offset in a page, for accesses of 1 << `shift` bytes: bits 10 to 21."""
    return Field(4, lambda old, value: old & ~(0xFFF << 10) | (value >> shift & 0xFFF) << 10, 0, 0xFFF, 1 << shift)


def _adr(old: int, value: int) -> int:
    """Set the immediate of adr and adrp: its lowest two bits are in bits 29 and 30."""
    return old & ~(3 << 29 | 0x7FFFF << 5) | (value & 3) << 29 | (value >> 2 & 0x7FFFF) << 5


def _moved(group: int) -> Field:
    """Return the immediate of movz and movk for 16 bits of the value."""
    return Field(4, lambda old, value: old & ~(0xFFFF << 5) | (value >> 16 * group & 0xFFFF) << 5, -_ANY, _ANY)


def _pages(target: int, address: int) -> int:
    """Return the distance between two pages, in pages."""
    return ((target & _PAGE) - (address & _PAGE)) >> 12


def _page(reference: Reference) -> int:
    return _pages(reference.symbol + reference.addend, reference.address)


def _entry_page(reference: Reference) -> int:
    return _pages(reference.entry + reference.addend, reference.address)


def _offset(reference: Reference) -> int:
    return absolute(reference) & 0xFFF


_ADRP = Field(4, _adr, -1 << 20, (1 << 20) - 1)
_BRANCH = _bits(0, 26, 2)

RELOCATIONS = Relocations(
    {
        257: Relocation("R_AARCH64_ABS64", absolute, wrapping(8)),
        258: Relocation("R_AARCH64_ABS32", absolute, word(4)),
        259: Relocation("R_AARCH64_ABS16", absolute, word(2)),
        260: Relocation("R_AARCH64_PREL64", relative, wrapping(8)),
        261: Relocation("R_AARCH64_PREL32", relative, word(4)),
        262: Relocation("R_AARCH64_PREL16", relative, word(2)),
        **{
            263 + index: Relocation(f"R_AARCH64_MOVW_UABS_G{(index + 1) // 2}", absolute, _moved(index // 2))
            for index in range(7)
        },
        273: Relocation("R_AARCH64_LD_PREL_LO19", relative, _bits(5, 19, 2)),
        274: Relocation("R_AARCH64_ADR_PREL_LO21", relative, _ADRP),
        275: Relocation("R_AARCH64_ADR_PREL_PG_HI21", _page, _ADRP),
        276: Relocation("R_AARCH64_ADR_PREL_PG_HI21_NC", _page, wrapping(4, _adr)),
        277: Relocation("R_AARCH64_ADD_ABS_LO12_NC", _offset, _low(0)),
        278: Relocation("R_AARCH64_LDST8_ABS_LO12_NC", _offset, _low(0)),
        279: Relocation("R_AARCH64_TSTBR14", relative, _bits(5, 14, 2)),
        280: Relocation("R_AARCH64_CONDBR19", relative, _bits(5, 19, 2)),
        282: Relocation("R_AARCH64_JUMP26", relative, _BRANCH),
        283: Relocation("R_AARCH64_CALL26", relative, _BRANCH),
        284: Relocation("R_AARCH64_LDST16_ABS_LO12_NC", _offset, _low(1)),
        285: Relocation("R_AARCH64_LDST32_ABS_LO12_NC", _offset, _low(2)),
        286: Relocation("R_AARCH64_LDST64_ABS_LO12_NC", _offset, _low(3)),
        299: Relocation("R_AARCH64_LDST128_ABS_LO12_NC", _offset, _low(4)),
        311: Relocation("R_AARCH64_ADR_GOT_PAGE", _entry_page, _ADRP, entry=True),
        312: Relocation("R_AARCH64_LD64_GOT_LO12_NC", lambda r: entry(r) & 0xFFF, _low(3), entry=True),
        314: Relocation("R_AARCH64_PLT32", relative, word(4)),
    },
    ignored=frozenset({0, 256}),
)
