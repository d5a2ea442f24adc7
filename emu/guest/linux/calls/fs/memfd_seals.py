"""The commands of fcntl that seal a file.  Source: Linux mm/memfd.c."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EBUSY, EINVAL, EPERM, LinuxError
from emu.guest.linux.fs.file_kinds import RegularOpen
from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.fs.seals import OF_PROGRAMS, Seal, need_unsealed
from emu.guest.linux.process.exec import is_mapped_for_writing

_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
COMMANDS: Final = frozenset({_F_ADD_SEALS, _F_GET_SEALS})
_ALL: Final = 0x3F
_EXECUTABLE: Final = 0o111


def seal(c: Caller, file: OpenFile, command: int, argument: int) -> int:
    """Return the seals of a file, or add some.  Raises `LinuxError`: EINVAL, EPERM, EBUSY."""
    if not isinstance(file, RegularOpen):
        raise LinuxError(EINVAL)
    inode = file.inode
    if command == _F_GET_SEALS:
        return inode.seals
    if not file.can_write:
        raise LinuxError(EPERM)
    if argument & ~_ALL:
        raise LinuxError(EINVAL)
    need_unsealed(inode.seals, Seal.SEAL)
    wanted = Seal(argument)
    if Seal.EXEC in wanted and inode.permissions & _EXECUTABLE:
        wanted |= OF_PROGRAMS
    if Seal.WRITE in wanted and Seal.WRITE not in inode.seals and is_mapped_for_writing(c.kernel, inode):
        raise LinuxError(EBUSY)
    inode.seals |= wanted
    return 0
