"""fcntl's commands about who is to be told of a file's events.

The answers are kept, and no signals are sent (O_ASYNC).  Source: Linux fs/fcntl.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EINVAL, ESRCH, LinuxError
from emu.guest.linux.files import OpenFile
from emu.isa.linux_signals import LAST

# F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX.
COMMANDS: Final = frozenset({8, 9, 10, 11, 15, 16})
_OF_THREAD, _OF_PROCESS, _OF_GROUP = range(3)
_OWNER: Final = struct.Struct("<ii")


def own(c: Caller, file: OpenFile, command: int, argument: int) -> int:
    """Do what one of the commands asks.  Raises `LinuxError`: EINVAL, ESRCH."""
    number = (argument & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)
    kind, owner = file.owner
    match command:
        case 8:  # F_SETOWN
            _set(c, file, _OF_GROUP if number < 0 else _OF_PROCESS, abs(number))
        case 9:  # F_GETOWN
            return -owner if kind == _OF_GROUP else owner
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
    if kind not in {_OF_THREAD, _OF_PROCESS, _OF_GROUP}:
        raise LinuxError(EINVAL)
    there = {
        _OF_THREAD: number in kernel.threads,
        _OF_PROCESS: number in kernel.processes,
        _OF_GROUP: any(process.group == number for process in kernel.processes.values()),
    }
    if number and not there[kind]:
        raise LinuxError(ESRCH)
    file.owner = (kind, number)
