"""Relocations of RISC-V (RISC-V ELF psABI, "Relocations").

Nothing is relaxed, so a code address that is computed by two labels is what the assembler saw.
"""

from __future__ import annotations

from emu.isa.relocations import (
    Field,
    Reference,
    Relocation,
    Relocations,
    absolute,
    entry_relative,
    relative,
    word,
    wrapping,
)

_REACH = 1 << 31
_HALF = 0x800  # the low part is signed: the high part is rounded


def _upper(old: int, value: int) -> int:
    """Set the immediate of lui and auipc."""
    return old & 0xFFF | (value + _HALF) & 0xFFFF_F000


def _immediate(old: int, value: int) -> int:
    """Set the immediate of an I-type instruction."""
    return old & 0xF_FFFF | (value & 0xFFF) << 20


def _store(old: int, value: int) -> int:
    """Set the immediate of an S-type instruction."""
    return old & ~0xFE00_0F80 | (value >> 5 & 0x7F) << 25 | (value & 0x1F) << 7


def _branch(old: int, value: int) -> int:
    bits = (value >> 12 & 1) << 31 | (value >> 5 & 0x3F) << 25 | (value >> 1 & 0xF) << 8 | (value >> 11 & 1) << 7
    return old & ~0xFE00_0F80 | bits


def _jump(old: int, value: int) -> int:
    bits = (value >> 20 & 1) << 31 | (value >> 1 & 0x3FF) << 21 | (value >> 11 & 1) << 20 | (value >> 12 & 0xFF) << 12
    return old & 0xFFF | bits


def _call(old: int, value: int) -> int:
    """Set the immediates of auipc and the jalr after it."""
    return _upper(old & 0xFFFF_FFFF, value) | _immediate(old >> 32, value) << 32


def _short_branch(old: int, value: int) -> int:
    bits = (value >> 8 & 1) << 12 | (value >> 3 & 3) << 10 | (value >> 6 & 3) << 5
    return old & ~0x1C7C | bits | (value >> 1 & 3) << 3 | (value >> 5 & 1) << 2


def _short_jump(old: int, value: int) -> int:
    bits = (value >> 11 & 1) << 12 | (value >> 4 & 1) << 11 | (value >> 8 & 3) << 9 | (value >> 10 & 1) << 8
    bits |= (value >> 6 & 1) << 7 | (value >> 7 & 1) << 6 | (value >> 1 & 7) << 3 | (value >> 5 & 1) << 2
    return old & ~0x1FFC | bits


def _paired(reference: Reference) -> int:
    """Return the pc-relative address whose high part is at the label."""
    return reference.paired(reference.symbol)


def _add(size: int) -> Field:
    return wrapping(size, lambda old, value: old + value)


def _subtract(size: int) -> Field:
    return wrapping(size, lambda old, value: old - value)


_HIGH = Field(4, _upper, -_REACH, _REACH - 1)
_CALL = Field(8, _call, -_REACH, _REACH - 1)
_LOW = wrapping(4, _immediate)
_LOW_STORE = wrapping(4, _store)

RELOCATIONS = Relocations(
    {
        1: Relocation("R_RISCV_32", absolute, word(4)),
        2: Relocation("R_RISCV_64", absolute, wrapping(8)),
        16: Relocation("R_RISCV_BRANCH", relative, Field(4, _branch, -1 << 12, (1 << 12) - 1, 2)),
        17: Relocation("R_RISCV_JAL", relative, Field(4, _jump, -1 << 20, (1 << 20) - 1, 2)),
        18: Relocation("R_RISCV_CALL", relative, _CALL),
        19: Relocation("R_RISCV_CALL_PLT", relative, _CALL),
        20: Relocation("R_RISCV_GOT_HI20", entry_relative, _HIGH, entry=True),
        23: Relocation("R_RISCV_PCREL_HI20", relative, _HIGH),
        24: Relocation("R_RISCV_PCREL_LO12_I", _paired, _LOW),
        25: Relocation("R_RISCV_PCREL_LO12_S", _paired, _LOW_STORE),
        26: Relocation("R_RISCV_HI20", absolute, _HIGH),
        27: Relocation("R_RISCV_LO12_I", absolute, _LOW),
        28: Relocation("R_RISCV_LO12_S", absolute, _LOW_STORE),
        **{33 + log: Relocation(f"R_RISCV_ADD{8 << log}", absolute, _add(1 << log)) for log in range(4)},
        **{37 + log: Relocation(f"R_RISCV_SUB{8 << log}", absolute, _subtract(1 << log)) for log in range(4)},
        44: Relocation("R_RISCV_RVC_BRANCH", relative, Field(2, _short_branch, -1 << 8, (1 << 8) - 1, 2)),
        45: Relocation("R_RISCV_RVC_JUMP", relative, Field(2, _short_jump, -1 << 11, (1 << 11) - 1, 2)),
        52: Relocation("R_RISCV_SUB6", absolute, wrapping(1, lambda old, v: old & 0xC0 | old - v & 0x3F)),
        53: Relocation("R_RISCV_SET6", absolute, wrapping(1, lambda old, v: old & 0xC0 | v & 0x3F)),
        **{54 + log: Relocation(f"R_RISCV_SET{8 << log}", absolute, wrapping(1 << log)) for log in range(3)},
        57: Relocation("R_RISCV_32_PCREL", relative, word(4)),
    },
    # NONE, ALIGN (the padding is kept), RELAX.
    ignored=frozenset({0, 43, 51}),
)
