"""System calls about the machine.  Source: Linux kernel/sys.c, drivers/char/random.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.fs.file_kinds import RegularOpen
from emu.guest.linux.fs.open_file import O_RDWR
from emu.guest.linux.fs.regular import RegularFile, Seal
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.personality import machine, release
from emu.guest.linux.process.process import NOTHING, Wait

RELEASE: Final = "6.12.0"
NODE: Final = "trapline"
_FIELD: Final = 65
_LARGEST: Final = 1 << 20
_GRND_NONBLOCK, _GRND_RANDOM, _GRND_INSECURE = 1, 2, 4
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL, _MFD_EXEC = 1, 2, 8, 16
_MFD_NAME_MAX: Final = 249
# syslog: wait for text; read all of it, and clear it; set which text goes to the console; the size of the buffer.
_LOG_READ, _LOG_READ_ALL, _LOG_READ_CLEAR, _LOG_LEVEL, _LOG_SIZE = 2, 3, 4, 8, 10
_FLUSH_LOCAL: Final = 1
_LEVELS: Final = range(1, 9)
_LOG_BYTES: Final = 1 << 17


@call("uname")
def uname(c: Caller, to: Address) -> int:
    """Report what system this is."""
    wanted, abi = c.thread.personality, c.kernel.abi
    fields = ("Linux", NODE, release(wanted, RELEASE), "#1 SMP Trapline", machine(wanted, abi), "(none)")
    c.write(to, b"".join(field.encode().ljust(_FIELD, b"\0") for field in fields))
    return 0


@call("getrandom")
def getrandom(c: Caller, to: Address, size: Size, flags: Unsigned) -> int:
    """Give random bytes: the same in every run."""
    if flags & ~(_GRND_NONBLOCK | _GRND_RANDOM | _GRND_INSECURE):
        raise LinuxError(EINVAL)
    if flags & _GRND_RANDOM and flags & _GRND_INSECURE:
        raise LinuxError(EINVAL)
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
    both = _MFD_EXEC | _MFD_NOEXEC_SEAL
    if flags & ~(_MFD_CLOEXEC | _MFD_ALLOW_SEALING | both) or flags & both == both:
        raise LinuxError(EINVAL)
    text = c.string(name)
    if len(text) > _MFD_NAME_MAX:
        raise LinuxError(EINVAL)
    path = f"/memfd:{text.decode('utf-8', 'surrogateescape')} (deleted)"
    inode = RegularFile(0o666 if flags & _MFD_NOEXEC_SEAL else 0o777, c.kernel.wall())
    if flags & (_MFD_ALLOW_SEALING | _MFD_NOEXEC_SEAL):
        inode.seals = Seal.EXEC if flags & _MFD_NOEXEC_SEAL else Seal.NONE
    c.process.credentials.give(inode)
    file = RegularOpen(inode, O_RDWR, path, c.kernel.wall, c.kernel.file_memory)
    return c.process.files.add(file, close_on_exec=bool(flags & _MFD_CLOEXEC))


@call("syslog")
def syslog(c: Caller, action: Int, to: Address, size: Int) -> Blocking:
    """Report what the kernel has said: nothing."""
    if action not in {_LOG_READ_ALL, _LOG_SIZE} and not c.process.credentials.can(Capability.SYSLOG):
        raise LinuxError(EPERM)
    if not 0 <= action <= _LOG_SIZE:
        raise LinuxError(EINVAL)
    if action in {_LOG_READ, _LOG_READ_ALL, _LOG_READ_CLEAR} and (not to or size < 0):
        raise LinuxError(EINVAL)
    if action == _LOG_LEVEL and size not in _LEVELS:
        raise LinuxError(EINVAL)
    if action == _LOG_READ and size:
        yield Wait(key=NOTHING)
    return _LOG_BYTES if action == _LOG_SIZE else 0


@call("vhangup")
def vhangup(c: Caller) -> int:
    """Hang up a terminal, which the caller does not have."""
    if not c.process.credentials.can(Capability.SYS_TTY_CONFIG):
        raise LinuxError(EPERM)
    return 0


@call("riscv_flush_icache")
def riscv_flush_icache(_c: Caller, _start: Address, _end: Address, flags: Size) -> int:
    """Check the flags; changed code is executed without a flush."""
    if flags & ~_FLUSH_LOCAL:
        raise LinuxError(EINVAL)
    return 0
