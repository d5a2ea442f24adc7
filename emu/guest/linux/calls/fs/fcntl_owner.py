"""fcntl's commands about who is told of a file's events (O_ASYNC).

Source: Linux fs/fcntl.c, fs/ioctl.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EINVAL, ENOTTY, ESRCH, LinuxError
from emu.guest.linux.fs.fasync import OF_GROUP, OF_PROCESS, OF_THREAD, current_owner
from emu.guest.linux.fs.open_file import O_ASYNC, OpenFile
from emu.isa.linux_signals import LAST

# F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX.
COMMANDS: Final = frozenset({8, 9, 10, 11, 15, 16})
_OWNER: Final = struct.Struct("<ii")


def own(c: Caller, file: OpenFile, command: int, argument: int) -> int:
    """Do what one of the commands asks.  Raises `LinuxError`: EINVAL, ESRCH."""
    number = (argument & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)
    kind, owner = file.owner
    match command:
        case 8:  # F_SETOWN
            _set(c, file, OF_GROUP if number < 0 else OF_PROCESS, abs(number))
        case 9:  # F_GETOWN
            return -owner if kind == OF_GROUP else owner
        case 10:  # F_SETSIG
            if not 0 <= number <= LAST:
                raise LinuxError(EINVAL)
            file.signal = number
        case 11:  # F_GETSIG
            return file.signal
        case 15:  # F_SETOWN_EX
            _set(c, file, *_OWNER.unpack(c.read(argument & c.kernel.isa.address_mask, _OWNER.size)))
        case _:
            c.write(argument & c.kernel.isa.address_mask, _OWNER.pack(kind, owner))
    return 0


def _set(c: Caller, file: OpenFile, kind: int, number: int) -> None:
    kernel = c.kernel
    if kind not in {OF_THREAD, OF_PROCESS, OF_GROUP}:
        raise LinuxError(EINVAL)
    there = {
        OF_THREAD: kernel.tasks.find_thread(number) is not None,
        OF_PROCESS: kernel.tasks.find(number) is not None,
        OF_GROUP: any(process.group == number for process in kernel.processes.values()),
    }
    if number and not there[kind]:
        raise LinuxError(ESRCH)
    file.owner = (kind, number)
    file.owner_set_by = current_owner(c.thread)


def set_async(c: Caller, fd: int, *, on: bool, told: bool = True) -> int:
    """Report the owner of a file of its events from now on, or no longer (O_ASYNC).

    Raises `LinuxError` ENOTTY where the file has no owner to tell, if that is `told`.
    """
    file = c.file(fd)
    if on == bool(file.flags & O_ASYNC):
        return 0
    if file.notices() is None:
        if told:
            raise LinuxError(ENOTTY)
        return 0
    file.flags ^= O_ASYNC
    c.kernel.async_files.set(file, fd, on=on)
    return 0
