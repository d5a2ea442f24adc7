"""ioctl: what all files understand, and what each kind of file does.  Source: Linux fs/ioctl.c."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.fs.fcntl import set_async
from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EBADF, LinuxError
from emu.guest.linux.fs.open_file import O_NONBLOCK, O_PATH

_FIONBIO: Final = 0x5421
_FIOASYNC: Final = 0x5452
_FIOCLEX, _FIONCLEX = 0x5451, 0x5450


@call("ioctl")
def ioctl(c: Caller, fd: Int, request: Unsigned, argument: Address) -> int:
    """Control a file."""
    file = c.file(fd)
    if file.flags & O_PATH:
        raise LinuxError(EBADF)
    if request in {_FIOCLEX, _FIONCLEX}:
        c.process.files.set_close_on_exec(fd, close=request == _FIOCLEX)
        return 0
    if request == _FIONBIO:
        file.flags = file.flags | O_NONBLOCK if c.number(argument, 4) else file.flags & ~O_NONBLOCK
        return 0
    if request == _FIOASYNC:
        return set_async(c, fd, on=bool(c.number(argument, 4)))
    return file.control(c, request, argument)
