"""Name spaces as files: what the links of /proc/PID/ns lead to.

There is one name space of each kind.  Source: Linux fs/nsfs.c, include/linux/proc_ns.h.
"""

from __future__ import annotations

import stat
from typing import Final

from emu.guest.linux.errno import ENOTTY, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import OpenFile, UserMemory

# The links, the numbers of the first name spaces (mnt and net have the next ones), and the flags of clone for them.
NAME_SPACES: Final = {
    "cgroup": (4026531835, 0x0200_0000),
    "ipc": (4026531839, 0x0800_0000),
    "mnt": (4026531841, 0x0002_0000),
    "net": (4026531840, 0x4000_0000),
    "pid": (4026531836, 0x2000_0000),
    "pid_for_children": (4026531836, 0x2000_0000),
    "time": (4026531834, 0x0000_0080),
    "time_for_children": (4026531834, 0x0000_0080),
    "user": (4026531837, 0x1000_0000),
    "uts": (4026531838, 0x0400_0000),
}
# The flags for all kinds (CLONE_NEW*).
ALL_KINDS: Final = 0x7E02_0080
# ioctl: which kind it is.
_NS_GET_NSTYPE: Final = 0xB703


class NameSpace(Inode):
    """A name space."""

    kind = stat.S_IFREG

    def __init__(self, name: str) -> None:
        super().__init__(0o444)
        self.number, self.flag = NAME_SPACES[name]
        self.text = f"{name.removesuffix('_for_children')}:[{self.number}]"
        """The text of a link to it."""


class NameSpaceOpen(OpenFile):
    """A name space that is open: setns takes it."""

    inode: NameSpace

    def __init__(self, inode: NameSpace, flags: int) -> None:
        super().__init__(inode, flags, inode.text)

    def control(self, memory: UserMemory, request: int, argument: int) -> int:  # noqa: ARG002
        """Return the flag of its kind."""
        if request != _NS_GET_NSTYPE:
            raise LinuxError(ENOTTY)
        return self.inode.flag
