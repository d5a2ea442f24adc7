"""The descriptor-table entries of a thread of an i386 program, which give fs and gs their bases.

The numbers are those of a 64-bit kernel, which runs 32-bit programs.

Source: Linux 6.12 arch/x86/kernel/tls.c, arch/x86/include/asm/segment.h (GDT_ENTRY_TLS_MIN).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from emu.guest.linux.errno import EINVAL, ESRCH, LinuxError

FIRST: Final = 12
_ENTRIES: Final = range(FIRST, FIRST + 3)
# struct user_desc: entry number, base, limit, flags.
_DESCRIPTOR: Final = struct.Struct("<IIII")
SIZE: Final = _DESCRIPTOR.size
_ANY: Final = 0xFFFF_FFFF
# The flags of struct user_desc, and of an entry that is not used.
_SEG_32BIT, _CODE, _READ_ONLY, _NOT_PRESENT = 1, 2 << 1, 1 << 3, 1 << 5
_KNOWN_FLAGS: Final = 0x7F
_UNUSED: Final = _READ_ONLY | _NOT_PRESENT


class Segment(NamedTuple):
    """A segment: its first address, its limit in bytes or pages, and the flags of struct user_desc."""

    base: int
    limit: int
    flags: int


class Segments(dict[int, Segment]):
    """The entries of a thread that are used, by their numbers."""

    def base(self, number: int) -> int | None:
        """Return the base of an entry; None: it is not used."""
        segment = self.get(number)
        return None if segment is None else segment.base

    def put(self, data: bytes, *, choose: bool) -> int:
        """Set or clear an entry by a struct user_desc; return its number.

        `choose`: the number may be -1, for one that is not used.  Raises `LinuxError` EINVAL,
        ESRCH if all are used.
        """
        number, base, limit, flags = _DESCRIPTOR.unpack(data)
        flags &= _KNOWN_FLAGS
        unused = not base and not limit and flags in {0, _UNUSED}
        if not unused and (not flags & _SEG_32BIT or flags & (_CODE | _NOT_PRESENT)):
            raise LinuxError(EINVAL)
        if number == _ANY and choose:
            free = next((entry for entry in _ENTRIES if entry not in self), None)
            if free is None:
                raise LinuxError(ESRCH)
            number = free
        _check(number)
        if unused:
            self.pop(number, None)
        else:
            self[number] = Segment(base, limit & 0xFFFFF, flags)
        return number

    def describe(self, number: int) -> bytes:
        """Return an entry as a struct user_desc.  Raises `LinuxError` EINVAL."""
        _check(number)
        return _DESCRIPTOR.pack(number, *self.get(number, Segment(0, 0, _UNUSED)))


def _check(number: int) -> None:
    """Raise `LinuxError` EINVAL if there is no such entry."""
    if number not in _ENTRIES:
        raise LinuxError(EINVAL)
