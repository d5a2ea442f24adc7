"""The values of DTrace's own probes of Linux: what Python computes, and machine code too.

A value is a 64-bit word: a form below, or the number of an argument that the place of the probe
passes.  `value_of` defines the meaning; `providers.linux_kernel.native_events` writes machine code.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.support.bad_address import BadAddressError
from emu.support.immutable import immutable
from emu.support.words import WORD_MASK

_WORD: Final = 8
_INT: Final = 0xFFFF_FFFF
_SIGN: Final = 0x8000_0000


@immutable
class Constant:
    """A value that is always the same."""

    value: int


@immutable
class Current:
    """The address of the current task."""


@immutable
class Field:
    """A member of a structure, by the structure's address; 0 if no memory is mapped there."""

    base: Value
    structure: str
    member: str
    size: int = _WORD


@immutable
class AsInt:
    """A C int in a register: the upper half may be anything."""

    value: Value


@immutable
class Masked:
    """Some bits."""

    value: Value
    mask: int


@immutable
class Negated:
    """Minus a value."""

    value: Value


@immutable
class Within:
    """1 if a value is from `first` to `last`, else 0."""

    value: Value
    first: int
    last: int


@immutable
class Same:
    """1 if two values are equal, else 0."""

    left: Value
    right: Value


@immutable
class Choice:
    """`taken` if a value is not 0, else `other`."""

    test: Value
    taken: Value
    other: Value


Value: TypeAlias = "int | Constant | Current | Field | AsInt | Masked | Negated | Within | Same | Choice"


def is_set(value: Value) -> Within:
    """Return whether a value is not 0."""
    return Within(value, 1, WORD_MASK)


def is_clear(value: Value) -> Within:
    """Return whether a value is 0."""
    return Within(value, 0, 0)


def value_of(value: Value, guest: LinuxKernelGuest, arguments: tuple[int, ...]) -> int:
    """Return a value, by what the place of the probe passes."""

    def of(one: Value) -> int:
        return value_of(one, guest, arguments)

    match value:
        case int():
            return arguments[value]
        case Constant(number):
            found = number
        case Current():
            found = guest.tasks.current()
        case Field(base, structure, member, size):
            found = _load(guest, of(base) + guest.facts.btf.offset(structure, member), size)
        case AsInt(one):
            found = (of(one) & _INT ^ _SIGN) - _SIGN
        case Masked(one, mask):
            found = of(one) & mask
        case Negated(one):
            found = -of(one)
        case Within(one, first, last):
            found = (of(one) - first & WORD_MASK) <= last - first
        case Same(left, right):
            found = of(left) == of(right)
        case Choice(test, taken, other):
            found = of(taken if of(test) else other)
    return found & WORD_MASK


def _load(guest: LinuxKernelGuest, address: int, size: int) -> int:
    try:
        return guest.engine.load(address & guest.isa.address_mask, size)
    except BadAddressError:
        return 0
