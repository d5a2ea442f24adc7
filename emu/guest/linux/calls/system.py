"""System calls about the machine.  Source: Linux kernel/sys.c, drivers/char/random.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.engine.pages import PAGE
from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, answer, call
from emu.guest.linux.file_kinds import RegularOpen
from emu.guest.linux.files import O_CLOEXEC, O_RDWR
from emu.guest.linux.regular_files import RegularFile

RELEASE: Final = "6.12.0"
NODE: Final = "trapline"
_FIELD: Final = 65
_LARGEST: Final = 1 << 20


@call("uname")
def uname(c: Caller, to: Address) -> int:
    """Report what system this is."""
    fields = ("Linux", NODE, RELEASE, "#1 SMP Trapline", c.kernel.abi.machine, "(none)")
    c.write(to, b"".join(field.encode().ljust(_FIELD, b"\0") for field in fields))
    return 0


@call("getrandom")
def getrandom(c: Caller, to: Address, size: Size, flags: Unsigned) -> int:
    """Give random bytes: the same in every run."""
    del flags
    size = min(size, _LARGEST)
    c.write(to, c.kernel.random.randbytes(size))
    return size


@call("sysinfo")
def sysinfo(c: Caller, to: Address) -> int:
    """Describe memory and load."""
    total = len(c.kernel.engine.memory.ram)
    free = total - c.kernel.frames.used * PAGE
    fields = (c.now() // 1_000_000_000, 0, 0, 0, total, free, 0, 0, 0, 0)
    if c.word == 8:
        c.write(to, struct.pack("<q9QHHxxxxQQI4x", *fields, len(c.kernel.processes), 0, 0, 0, 1))
    else:
        c.write(to, struct.pack("<i9IHHIII8x", *fields, len(c.kernel.processes), 0, 0, 0, 1))
    return 0


@call("memfd_create")
def memfd_create(c: Caller, name: Address, flags: Unsigned) -> int:
    """Make a file that has no name."""
    text = c.path(name)
    inode, path = RegularFile(0o777, c.kernel.wall()), f"/memfd:{text} (deleted)"
    file = RegularOpen(inode, O_RDWR, path, c.kernel.wall, c.kernel.file_memory)
    return c.process.files.add(file, close_on_exec=bool(flags & 1)) if not flags & ~O_CLOEXEC & ~3 else -22


@call("syslog")
def syslog(c: Caller, action: Int) -> int:
    """Say that the kernel has said nothing."""
    del c, action
    return 0


answer("vhangup", "riscv_flush_icache")
