"""mseal: memory that stays as it is.

Source: Linux mm/mseal.c, Documentation/userspace-api/mseal.rst.
"""

from __future__ import annotations

from emu.guest.linux.calls.mm.vm_ranges import end_of, parts
from emu.guest.linux.calls.table import Address, Caller, Size, call
from emu.guest.linux.errno import EINVAL, ENOMEM, ENOSYS, LinuxError
from emu.guest.linux.mm.address_space import Mark


@call("mseal")
def mseal(c: Caller, address: Address, length: Size, flags: Size) -> int:
    """Seal memory: mprotect, munmap, mremap, mmap and some advice refuse it from now on."""
    if c.word != 8:
        raise LinuxError(ENOSYS)
    if flags:
        raise LinuxError(EINVAL)
    end = end_of(c, address, length)
    if None in parts(c.process, address, end):
        raise LinuxError(ENOMEM)
    c.process.space.mark(address, end, give=Mark.SEALED)
    return 0
