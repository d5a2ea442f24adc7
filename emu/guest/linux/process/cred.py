"""The credentials of a process, and the permissions that they give.

Source: Linux include/linux/cred.h, fs/namei.c, fs/attr.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode
from emu.support.immutable import immutable

READ, WRITE, SEARCH = 4, 2, 1
EXECUTE: Final = SEARCH
_SET_UID, _SET_GID, _STICKY = 0o4000, 0o2000, 0o1000


@immutable
class Ids:
    """The numbers of a user or a group that a process has."""

    real: int = 0
    effective: int = 0
    saved: int = 0
    files: int = 0
    """The number that counts when it opens and makes files."""

    def knows(self, number: int) -> bool:
        """Return whether a process without privilege may take a number as its own."""
        return number in {self.real, self.effective, self.saved}

    @classmethod
    def all(cls, number: int) -> Ids:
        """Return four times the same number."""
        return cls(number, number, number, number)


class Capability(IntEnum):
    """The capabilities that are asked for here (include/uapi/linux/capability.h)."""

    CHOWN = 0
    DAC_OVERRIDE = 1
    DAC_READ_SEARCH = 2
    FOWNER = 3
    FSETID = 4
    KILL = 5
    SETGID = 6
    SETUID = 7
    NET_BIND_SERVICE = 10
    NET_RAW = 13
    IPC_LOCK = 14
    IPC_OWNER = 15
    SYS_CHROOT = 18
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYS_NICE = 23
    SYS_RESOURCE = 24
    SYS_TTY_CONFIG = 26
    MKNOD = 27
    SETFCAP = 31
    SYSLOG = 34


# CAP_CHOWN to CAP_CHECKPOINT_RESTORE.
ALL: Final = (1 << 41) - 1
# The capabilities that follow the user of file accesses (CAP_FS_SET).
_OF_FILES: Final = 0b11111 | 1 << Capability.MKNOD | 1 << 9 | 1 << 32


@dataclass(slots=True)
class Credentials:
    """The users, groups and capabilities of a process."""

    user: Ids = field(default_factory=Ids)
    group: Ids = field(default_factory=Ids)
    groups: tuple[int, ...] = ()
    """Supplementary ones."""
    permitted: int = ALL
    """The capabilities that it may take on."""
    effective: int = ALL
    inheritable: int = 0
    no_new_privileges: bool = False
    """Whether exec takes no notice of set-user-ID bits (PR_SET_NO_NEW_PRIVS)."""
    keeps: bool = False
    """Whether it keeps its permitted capabilities when it is root no longer (PR_SET_KEEPCAPS)."""

    def can(self, capability: Capability) -> bool:
        """Return whether the process has a capability."""
        return bool(self.effective >> capability & 1)

    def set_user(self, user: Ids) -> None:
        """Change the user and the capabilities (security/commoncap.c, cap_emulate_setxuid)."""
        old, self.user = self.user, user
        was_root = 0 in {old.real, old.effective, old.saved}
        if was_root and 0 not in {user.real, user.effective, user.saved} and not self.keeps:
            self.permitted = self.effective = 0
        if old.effective == 0 and user.effective:
            self.effective = 0
        if old.effective and user.effective == 0:
            self.effective = self.permitted

    def set_file_user(self, number: int) -> None:
        """Change the user of file accesses, and the capabilities that go with it."""
        old, self.user = self.user, replace(self.user, files=number)
        if old.files == 0 and number:
            self.effective &= ~_OF_FILES
        if old.files and number == 0:
            self.effective |= self.permitted & _OF_FILES

    def copy(self) -> Credentials:
        """Return the same, apart."""
        return replace(self)

    def in_group(self, group: int) -> bool:
        """Return whether files of a group are the process's too."""
        return group == self.group.files or group in self.groups

    def may(self, inode: Inode, wanted: int) -> bool:
        """Return whether an inode's permissions grant READ, WRITE and SEARCH or EXECUTE."""
        if self.can(Capability.DAC_OVERRIDE):
            return not wanted & EXECUTE or isinstance(inode, Directory) or bool(inode.permissions & 0o111)
        shift = 6 if inode.uid == self.user.files else 3 if self.in_group(inode.gid) else 0
        return wanted & ~(inode.permissions >> shift) == 0

    def owns(self, inode: Inode) -> bool:
        """Return whether the process may change what an inode says of itself."""
        return self.user.files == inode.uid or self.can(Capability.FOWNER)

    def may_remove(self, directory: Directory, inode: Inode) -> bool:
        """Return whether a name may be taken out of a directory that can be written."""
        return not directory.permissions & _STICKY or self.owns(inode) or self.owns(directory)

    def give(self, inode: Inode, directory: Directory | None = None) -> None:
        """Make the process the owner of a new inode in a directory."""
        inode.uid, inode.gid = self.user.files, self.group.files
        if directory is not None and directory.permissions & _SET_GID:
            inode.gid = directory.gid
            if isinstance(inode, Directory):
                inode.permissions |= _SET_GID

    def executed(self, program: Inode) -> None:
        """Take on the owner of a program that has the set-user-ID or set-group-ID bit."""
        permissions = 0 if self.no_new_privileges else program.permissions
        user = program.uid if permissions & _SET_UID else self.user.effective
        group = program.gid if permissions & _SET_GID else self.group.effective
        self.user = Ids(self.user.real, user, user, user)
        self.group = Ids(self.group.real, group, group, group)
        self.permitted = ALL if 0 in {self.user.real, user} else 0
        self.effective = ALL if user == 0 else 0
        self.keeps = False
