"""Who a process is, and what that lets it do.  Source: Linux include/linux/cred.h, fs/namei.c, fs/attr.c."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from emu.guest.linux.inodes import Directory, Inode

READ, WRITE, SEARCH = 4, 2, 1
EXECUTE: Final = SEARCH
_SET_UID, _SET_GID, _STICKY = 0o4000, 0o2000, 0o1000


@dataclass(frozen=True, slots=True)
class Ids:
    """The numbers of a user or a group that a process has."""

    real: int = 0
    effective: int = 0
    saved: int = 0
    files: int = 0
    """With which it opens and makes files."""

    def knows(self, number: int) -> bool:
        """Return whether a process without privilege may take a number as its own."""
        return number in {self.real, self.effective, self.saved}

    @classmethod
    def all(cls, number: int) -> Ids:
        """Return four times the same number."""
        return cls(number, number, number, number)


@dataclass(slots=True)
class Credentials:
    """The users and groups of a process."""

    user: Ids = field(default_factory=Ids)
    group: Ids = field(default_factory=Ids)
    groups: tuple[int, ...] = ()
    """Supplementary ones."""

    @property
    def privileged(self) -> bool:
        """Whether everything is allowed: root has all capabilities, the others have none."""
        return self.user.effective == 0

    def copy(self) -> Credentials:
        """Return the same, apart."""
        return replace(self)

    def in_group(self, group: int) -> bool:
        """Return whether files of a group are the process's too."""
        return group == self.group.files or group in self.groups

    def may(self, inode: Inode, wanted: int) -> bool:
        """Return whether an inode's permissions grant READ, WRITE and SEARCH or EXECUTE."""
        if self.user.files == 0:
            return not wanted & EXECUTE or isinstance(inode, Directory) or bool(inode.permissions & 0o111)
        shift = 6 if inode.uid == self.user.files else 3 if self.in_group(inode.gid) else 0
        return wanted & ~(inode.permissions >> shift) == 0

    def owns(self, inode: Inode) -> bool:
        """Return whether the process may change what an inode says of itself."""
        return self.privileged or self.user.files == inode.uid

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
        user = program.uid if program.permissions & _SET_UID else self.user.effective
        group = program.gid if program.permissions & _SET_GID else self.group.effective
        self.user = Ids(self.user.real, user, user, user)
        self.group = Ids(self.group.real, group, group, group)
