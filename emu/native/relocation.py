"""Relocations in object code of the hosts that there is machine code for.

Sources: System V ABI, AMD64 Architecture Processor Supplement, 4.4; ELF for the Arm 64-bit
Architecture (AArch64), 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_PAGE: Final = 0x1000
_INSTRUCTION: Final = 4
# ldr x16,[pc,#8]    br x16: jumps to the address behind it.
_FAR_JUMP: Final = bytes.fromhex("50000058 00021fd6")


class RelocationError(Exception):
    """A distance is too long for its place."""


class Relocation(NamedTuple):
    """How the bytes of one kind of place are made."""

    size: int
    apply: Callable[[int, int, int], int]
    """(the old number at the place, the target, the address of the place): the new number."""
    by_table: bool = False
    """Whether the target is a word that holds the symbol's address."""
    by_jump: bool = False
    """Whether the target may be replaced by a jump to it, if it is too far."""


class Host(NamedTuple):
    """The object code of one kind of host."""

    relocations: Mapping[int, Relocation]
    far_jump: bytes = b""
    """Jumps to the address that follows it; empty: nothing needs that."""
    coherent: bool = True
    """Whether the CPU executes what was written without being told."""


def _absolute(size: int) -> Relocation:
    return Relocation(size, lambda _old, target, _place: target & (1 << 8 * size) - 1)


def _relative(size: int) -> Relocation:
    def apply(_old: int, target: int, place: int) -> int:
        return _fitting(target - place, 8 * size)

    return Relocation(size, apply)


def _fitting(distance: int, bits: int) -> int:
    """Return a signed number as a field of so many bits.  Raises `RelocationError`."""
    if not -(1 << bits - 1) <= distance < 1 << bits - 1:
        raise RelocationError
    return distance & (1 << bits) - 1


def _move(part: int) -> Relocation:
    """Return that of 16 bits of an address, in movz or movk."""
    return Relocation(_INSTRUCTION, lambda old, target, _place: old | (target >> 16 * part & 0xFFFF) << 5)


def _page(old: int, target: int, place: int) -> int:
    """Put the distance of two pages into adrp."""
    pages = _fitting((target & -_PAGE) - (place & -_PAGE) >> 12, 21)
    return old | (pages & 3) << 29 | pages >> 2 << 5


def _near(old: int, target: int, place: int) -> int:
    """Put a distance into adr."""
    distance = _fitting(target - place, 21)
    return old | (distance & 3) << 29 | distance >> 2 << 5


def _low(shift: int) -> Callable[[int, int, int], int]:
    """Return the function for the place in a page, in units of an access."""
    return lambda old, target, _place: old | (target & _PAGE - 1) >> shift << 10


def _branch(bits: int, at: int) -> Callable[[int, int, int], int]:
    return lambda old, target, place: old | _fitting(target - place >> 2, bits) << at


# R_X86_64_64, PC32, PLT32, PC64.
_X86_64: Final = {1: _absolute(8), 2: _relative(4), 4: _relative(4), 24: _relative(8)}
# R_AARCH64_*
_AARCH64: Final = {
    # ABS64, ABS32, PREL64, PREL32
    257: _absolute(8),
    258: _absolute(4),
    260: _relative(8),
    261: _relative(4),
    # MOVW_UABS_G0 to G3; those of an even number do not check the rest of the address, nor is it checked here.
    **{263 + number: _move(number // 2) for number in range(7)},
    # ADR_PREL_LO21, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC
    274: Relocation(_INSTRUCTION, _near),
    275: Relocation(_INSTRUCTION, _page),
    277: Relocation(_INSTRUCTION, _low(0)),
    # LDST8_ABS_LO12_NC, then those of 16, 32, 64 and 128 bits
    278: Relocation(_INSTRUCTION, _low(0)),
    284: Relocation(_INSTRUCTION, _low(1)),
    285: Relocation(_INSTRUCTION, _low(2)),
    286: Relocation(_INSTRUCTION, _low(3)),
    299: Relocation(_INSTRUCTION, _low(4)),
    # CONDBR19, JUMP26, CALL26
    280: Relocation(_INSTRUCTION, _branch(19, 5)),
    282: Relocation(_INSTRUCTION, _branch(26, 0), by_jump=True),
    283: Relocation(_INSTRUCTION, _branch(26, 0), by_jump=True),
    # ADR_GOT_PAGE, LD64_GOT_LO12_NC
    311: Relocation(_INSTRUCTION, _page, by_table=True),
    312: Relocation(_INSTRUCTION, _low(3), by_table=True),
}
# By e_machine: EM_X86_64, EM_AARCH64.
HOSTS: Final = {62: Host(_X86_64), 183: Host(_AARCH64, _FAR_JUMP, coherent=False)}
