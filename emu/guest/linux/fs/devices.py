"""The devices of the guest: /dev/null and similar devices."""

# ruff: noqa: ARG002  (devices have no offsets, whatever is given)

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.guest.linux.errno import ENOSPC, ENXIO, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Device, Inode, Symlink
from emu.guest.linux.fs.open_file import OpenFile

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

_MEMORY: Final = 1 << 8
_TERMINAL: Final = 5 << 8
# Driver by device number (Documentation/admin-guide/devices.txt).
DRIVERS: Final = {
    _MEMORY | 3: "null",
    _MEMORY | 5: "zero",
    _MEMORY | 7: "full",
    _MEMORY | 8: "random",
    _MEMORY | 9: "urandom",
    _TERMINAL: "tty",
    _TERMINAL | 2: "ptmx",
}


class Null(OpenFile):
    """/dev/null, /dev/zero, /dev/full, /dev/random: `source` gives what is read."""

    def __init__(self, inode: Inode, flags: int, path: str, source: Callable[[int], bytes], refusal: int = 0) -> None:
        super().__init__(inode, flags, path)
        self._source = source
        self._refusal = refusal

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Read from the source."""
        return self._source(size)

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Swallow it."""
        if self._refusal:
            raise LinuxError(self._refusal)
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """Stay."""
        return 0


def open_device(kernel: Kernel, inode: Device, flags: int, path: str) -> OpenFile:
    """Open a device.  Raises `LinuxError` ENXIO if nothing drives it."""
    match inode.driver:
        case "null":
            return Null(inode, flags, path, lambda _size: b"")
        case "zero":
            return Null(inode, flags, path, bytes)
        case "full":
            return Null(inode, flags, path, bytes, ENOSPC)
        case "random" | "urandom":
            return Null(inode, flags, path, kernel.random.randbytes)
        case "tty":
            return kernel.terminals.open_controlling(flags)
        case "ptmx":
            return kernel.terminals.open_master(inode, flags)
        case "pts":
            return kernel.terminals.open_slave(inode, flags, path)
        case _:
            raise LinuxError(ENXIO)


def populate(root: Directory, kernel: Kernel) -> None:
    """Create /dev, which replaces that of the host's directory."""
    if root.get("dev") is not None:
        del root.entries()["dev"]
    devices, time = root.make("dev"), kernel.wall()
    for number, name in DRIVERS.items():
        devices.add(name, Device(name, number, time=time))
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                         ("stderr", "/proc/self/fd/2")):  # fmt: skip
        devices.add(name, Symlink(target, time))
    devices.make("shm", 0o1777)
    devices.add("mqueue", kernel.posix_queues)
    devices.add("pts", kernel.terminals.directory)
