"""Values and the widths of their types: loads and stores by size, bit-fields, conversions.

A value that is cut to its type goes to the top of the register and back, which extends it:

    63                     32 31                      0
    +------------------------+------------------------+
    | anything               | value of 32 bits       |
    +------------------------+------------------------+
    | value of 32 bits       | 0                      |  sll by 32
    +------------------------+------------------------+
    | its sign, or 0         | value of 32 bits       |  sra by 32, or srl
    +------------------------+------------------------+

A bit-field is read with the smallest aligned unit of memory that holds all of it, for example the 5
bits at bit offset 11 of a struct, which lie in the half-word at byte 0:

    bit    15        11 10               0
          +------------+-----------------+
    unit  | field (5)  | others          |  lduh [0]
          +------------+-----------------+
    `low` is 11, the unit has 16 bits; the field goes to the top of the register by sll 64 - 5 - 11,
    and down to bit 0 by sra (or srl) 64 - 5.

It is written by reading the unit, clearing the field in it and putting the new bits there:

          (unit & ~(0b11111 << 11)) | (value & 0b11111) << 11

A register has 64 bits, whatever the type of its value is; the bits above those of the type are
arbitrary until a function of this module clears them.  Source: FreeBSD libdtrace dt_cg.c
(dt_cg_typecast(), dt_cg_field_get(), dt_cg_field_set()).
"""

from __future__ import annotations

from typing import Final

from trapline.d.codegen.assembler import Assembler
from trapline.d.types.rules import is_scalar, is_signed, size_of
from trapline.d.types.types import Member, Type
from trapline.framework.base.dif import Op

# By the size in bytes, and whether the value is signed.
LOADS: Final = {
    (1, True): Op.LDSB,
    (2, True): Op.LDSH,
    (4, True): Op.LDSW,
    (8, True): Op.LDX,
    (1, False): Op.LDUB,
    (2, False): Op.LDUH,
    (4, False): Op.LDUW,
    (8, False): Op.LDX,
}
STORES: Final = {1: Op.STB, 2: Op.STH, 4: Op.STW, 8: Op.STX}


def cut(out: Assembler, register: int, type_: Type) -> None:
    """Cut a register to the width of a type and extend it again."""
    size = size_of(type_)
    if size < 8:
        with out.scratch(64 - 8 * size) as shift:
            out.emit(Op.SLL, register, shift, register)
            out.emit(Op.SRA if is_signed(type_) else Op.SRL, register, shift, register)


def cast(out: Assembler, register: int, source: Type, target: Type) -> None:
    """Convert as libdtrace does.

    A widened value is extended only if its type is signed; one of the same width is left alone if
    only the sign of its type changes, and cut otherwise.
    """
    if not is_scalar(target) or not is_scalar(source):
        return
    narrow, wide = size_of(source), size_of(target)
    if wide == narrow and is_signed(source) != is_signed(target):
        return
    if wide <= narrow:
        cut(out, register, target)
    elif is_signed(source):
        with out.scratch(64 - 8 * narrow) as shift:
            out.emit(Op.SLL, register, shift, register)
            if is_signed(target) or wide == 8:
                out.emit(Op.SRA, register, shift, register)
                return
            out.set(shift, 8 * (wide - narrow))
            out.emit(Op.SRA, register, shift, register)
            out.set(shift, 64 - 8 * wide)
            out.emit(Op.SRL, register, shift, register)


def extract(out: Assembler, register: int, member: Member, *, signed: bool) -> None:
    """Move the bits of a bit-field down to bit 0 and extend them."""
    low = member.offset - 8 * member.unit[0]
    with out.scratch(64 - member.bits - low) as shift:
        out.emit(Op.SLL, register, shift, register)
        out.set(shift, 64 - member.bits)
        out.emit(Op.SRA if signed else Op.SRL, register, shift, register)


def insert(out: Assembler, member: Member, where: int, register: int) -> None:
    """Put the low bits of a register into a bit-field at an address, leaving the bits around it."""
    first, size = member.unit
    low, mask = member.offset - 8 * first, (1 << member.bits) - 1
    value = out.allocate()
    kept = out.allocate()
    with out.scratch(mask) as scratch:
        out.emit(Op.AND, register, scratch, value)
        if low:
            out.set(scratch, low)
            out.emit(Op.SLL, value, scratch, value)
        out.emit(LOADS[size, False], where, rd=kept)
        out.set(scratch, ~(mask << low))
        out.emit(Op.AND, kept, scratch, kept)
    out.emit(Op.OR, kept, value, value)
    out.emit(STORES[size], value, rd=where)
    out.release(kept)
    out.release(value)
