"""Files of the guest: what a name refers to, and the kinds that have neither bytes nor entries.

`emu.guest.linux.fs.regular` has files with content, `emu.guest.linux.fs.dir` directories.
"""

from __future__ import annotations

import stat
from collections.abc import Callable

from emu.guest.linux.fs.locks import Locks
from emu.guest.linux.fs.xattr import ExtendedAttributes


def device_number(major: int, minor: int) -> int:
    """Return the number of a device, as stat has it (include/linux/kdev_t.h, new_encode_dev)."""
    return major << 8 | minor & 0xFF | (minor & ~0xFF) << 12


def major_and_minor(device: int) -> tuple[int, int]:
    """Return what a device's number is made of."""
    return device >> 8 & 0xFFF, device & 0xFF | device >> 12 & ~0xFF


class Inode:
    """The object that a name refers to.  Times are nanoseconds since 1970."""

    kind: int = 0
    """S_IF* of `stat`."""

    def __init__(self, permissions: int, time: int = 0) -> None:
        self.number = 0
        """st_ino; 0 until the first request for it (`Kernel.numbered`)."""
        self.permissions = permissions
        self.uid = self.gid = 0
        self.links = 1
        self.accessed = self.modified = self.changed = time
        self.device = 0
        """The device of a device file (`device_number`)."""
        self._locks: Locks | None = None
        self.extended: ExtendedAttributes | None = None
        """Its extended attributes; None: it has none, and never had one."""

    @property
    def locks(self) -> Locks:
        """The locks on it."""
        if self._locks is None:
            self._locks = Locks()
        return self._locks

    def release_locks(self, owner: object) -> None:
        """Take out the locks of an owner that has closed it."""
        if self._locks is not None:
            self._locks.release(owner)

    @property
    def mode(self) -> int:
        """Kind and permissions (st_mode)."""
        return self.kind | self.permissions

    @property
    def size(self) -> int:
        """Bytes (st_size)."""
        return 0

    @property
    def allocated(self) -> int:
        """Bytes that are kept (st_blocks * 512)."""
        return self.size


class Symlink(Inode):
    """A symbolic link."""

    kind = stat.S_IFLNK

    def __init__(self, target: str, time: int = 0) -> None:
        super().__init__(0o777, time)
        self.target = target

    @property
    def size(self) -> int:
        """Length of the target."""
        return len(self.target.encode("utf-8", "surrogateescape"))

    def follow(self) -> Inode | None:
        """Return what it leads to where the text does not say: the links of /proc.

        None: follow the text.
        """
        return None


class MagicLink(Symlink):
    """A link of /proc, which leads to an inode whatever has become of its path."""

    def __init__(self, text: Callable[[], str], inode: Callable[[], Inode | None]) -> None:
        super().__init__("")
        self._text = text
        self._inode = inode

    @property
    def target(self) -> str:
        """The text for readlink."""
        return self._text()

    @target.setter
    def target(self, _value: str) -> None:
        """Leave it: the text follows the process."""

    @property
    def size(self) -> int:
        """The size that /proc reports."""
        return 64

    def follow(self) -> Inode | None:
        """Return the inode."""
        return self._inode()


class Device(Inode):
    """A character device; `driver` names what opens it."""

    kind = stat.S_IFCHR

    def __init__(self, driver: str, device: int, permissions: int = 0o666, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.driver = driver
        self.device = device


class Fifo(Inode):
    """A named pipe, or the two ends of one that has no name."""

    kind = stat.S_IFIFO

    def __init__(self, permissions: int, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.pipe: object | None = None
        """The pipe that is open, or the user's stream instead of it; None: it is not open."""
        self.anonymous = False
        """Whether it has no name: then it is opened again through /proc, and no opener waits."""


class Socket(Inode):
    """A socket, or the name of one in the file system."""

    kind = stat.S_IFSOCK

    def __init__(self, permissions: int, time: int = 0) -> None:
        super().__init__(permissions, time)
        self.socket: object | None = None
        """The socket that is bound to this name; None: it was closed."""


class Anonymous(Inode):
    """The object of a file without a name and a type: an epoll, a timer, an event counter."""

    def __init__(self) -> None:
        super().__init__(0o600)


class Generated(Inode):
    """A file of /proc, whose content is made when it is opened."""

    kind = stat.S_IFREG

    def __init__(self, content: Callable[[], bytes], permissions: int = 0o444) -> None:
        super().__init__(permissions)
        self.content = content
