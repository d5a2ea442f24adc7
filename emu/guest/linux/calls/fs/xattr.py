"""System calls about extended attributes.

Source: Linux fs/xattr.c, mm/shmem.c, security/commoncap.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import AT_FDCWD, Address, Caller, Int, PathAddress, Size, Unsigned, call
from emu.guest.linux.errno import (
    E2BIG,
    EINVAL,
    ENODATA,
    EOPNOTSUPP,
    EPERM,
    ERANGE,
    LinuxError,
)
from emu.guest.linux.fs.dir import Directory, Listing
from emu.guest.linux.fs.inode import Anonymous, Fifo, Generated, Inode, MagicLink
from emu.guest.linux.fs.inotify import IN_ATTRIB
from emu.guest.linux.fs.nsfs import NameSpace
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.fs.xattr import CREATE, REPLACE, ExtendedAttributes
from emu.guest.linux.process.cred import READ, WRITE, Capability
from emu.support.words import BadAddressError

_NAME_MAX, _SIZE_MAX = 255, 65_536
_USER, _TRUSTED, _SECURITY, _SYSTEM = "user.", "trusted.", "security.", "system."
_CAPABILITIES: Final = "security.capability"
# Sizes of struct vfs_cap_data by its revision.
_CAPABILITY_SIZES: Final = {0x0100_0000: 12, 0x0200_0000: 20, 0x0300_0000: 24}
_STICKY: Final = 0o1000


def _at(c: Caller, path_at: int, *, follow: bool) -> Inode:
    return c.inode(AT_FDCWD, c.path(path_at), follow=follow)


def _name(c: Caller, address: int) -> str:
    """Read a name.  Raises `LinuxError`: ERANGE, EFAULT."""
    try:
        text = c.read(address, _NAME_MAX + 1)
    except BadAddressError:
        text = c.string(address)[: _NAME_MAX + 1] + b"\0"
    name, end, _ = text.partition(b"\0")
    if not name or not end or len(name) > _NAME_MAX:
        raise LinuxError(ERANGE)
    return name.decode("utf-8", "surrogateescape")


def _check(c: Caller, inode: Inode, name: str, wanted: int) -> None:
    """Check that the caller may read or write an attribute (xattr_permission).

    Raises `LinuxError`: EPERM, ENODATA, EACCES.
    """
    refusal = LinuxError(EPERM if wanted == WRITE else ENODATA)
    if name.startswith((_SECURITY, _SYSTEM)):
        return
    if name.startswith(_TRUSTED):
        if not c.process.credentials.can(Capability.SYS_ADMIN):
            raise refusal
        return
    if name.startswith(_USER):
        if not isinstance(inode, (RegularFile, Directory, Generated, NameSpace)):
            raise refusal
        sticky = isinstance(inode, Directory) and inode.permissions & _STICKY
        if sticky and wanted == WRITE and not c.process.credentials.owns(inode):
            raise refusal
    c.need(inode, wanted)


def _supports(inode: Inode) -> bool:
    """Return whether the file system of an inode has extended attributes: /proc and others do not."""
    if isinstance(inode, Fifo) and inode.anonymous:
        return False
    return not isinstance(inode, (Listing, Generated, MagicLink, Anonymous, NameSpace))


def _need_space(inode: Inode, name: str) -> None:
    """Check that an inode has attributes whose names begin so.

    Raises `LinuxError`: EOPNOTSUPP, EINVAL.
    """
    prefix = next((one for one in (_USER, _TRUSTED, _SECURITY) if name.startswith(one)), None)
    if prefix is None or not _supports(inode):
        raise LinuxError(EOPNOTSUPP)
    if name == prefix:
        raise LinuxError(EINVAL)


def _may_set(c: Caller, name: str, value: bytes | None) -> None:
    """Check what the attributes of security modules need (cap_inode_setxattr, cap_convert_nscap).

    Raises `LinuxError`: EPERM, EINVAL.
    """
    own = c.process.credentials
    if name == _CAPABILITIES:
        if value and _CAPABILITY_SIZES.get(int.from_bytes(value[:4], "little") & 0xFF00_0000) != len(value):
            raise LinuxError(EINVAL)
        if not own.can(Capability.SETFCAP):
            raise LinuxError(EPERM)
    elif name.startswith(_SECURITY) and not own.can(Capability.SYS_ADMIN):
        raise LinuxError(EPERM)


def _changed(c: Caller, inode: Inode) -> int:
    inode.changed = c.kernel.wall()
    c.kernel.watches.tell(inode, IN_ATTRIB)
    return 0


def _given(c: Caller, name_at: int, at: int, size: int, flags: int) -> tuple[str, bytes]:
    """Return the name and the value that are to be set.

    Raises `LinuxError`: EINVAL, ERANGE, E2BIG, EFAULT.
    """
    if flags & ~(CREATE | REPLACE):
        raise LinuxError(EINVAL)
    name = _name(c, name_at)
    if size > _SIZE_MAX:
        raise LinuxError(E2BIG)
    return name, c.read(at, size) if size else b""


def _set(c: Caller, inode: Inode, given: tuple[str, bytes], flags: int) -> int:
    name, value = given
    if name == _CAPABILITIES:
        _may_set(c, name, value)
    _check(c, inode, name, WRITE)
    _may_set(c, name, value)
    _need_space(inode, name)
    if inode.extended is None:
        inode.extended = ExtendedAttributes(c.kernel.file_memory)
    inode.extended.set(name, value, flags)
    return _changed(c, inode)


def _get(c: Caller, inode: Inode, name: str, to: int, size: int) -> int:
    _check(c, inode, name, READ)
    _need_space(inode, name)
    if inode.extended is None:
        raise LinuxError(ENODATA)
    return _tell(c, inode.extended.get(name), to, size)


def _tell(c: Caller, data: bytes, to: int, size: int) -> int:
    """Write what was asked for; with a size of 0 only tell its length."""
    if size:
        if size < len(data):
            raise LinuxError(ERANGE)
        if data:
            c.write(to, data)
    return len(data)


def _list(c: Caller, inode: Inode, to: int, size: int) -> int:
    names = inode.extended.names() if inode.extended is not None else []
    if not c.process.credentials.can(Capability.SYS_ADMIN):
        names = [name for name in names if not name.startswith(_TRUSTED)]
    data = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
    return _tell(c, data, to, size)


def _remove(c: Caller, inode: Inode, name: str) -> int:
    _check(c, inode, name, WRITE)
    _may_set(c, name, None)
    _need_space(inode, name)
    if inode.extended is None:
        raise LinuxError(ENODATA)
    inode.extended.remove(name)
    return _changed(c, inode)


@call("setxattr")
def setxattr(c: Caller, path: PathAddress, name: Address, at: Address, size: Size, flags: Unsigned) -> int:
    """Set an attribute of a file."""
    given = _given(c, name, at, size, flags)
    return _set(c, _at(c, path, follow=True), given, flags)


@call("lsetxattr")
def lsetxattr(c: Caller, path: PathAddress, name: Address, at: Address, size: Size, flags: Unsigned) -> int:
    """Set an attribute of a file, or of a symbolic link."""
    given = _given(c, name, at, size, flags)
    return _set(c, _at(c, path, follow=False), given, flags)


@call("fsetxattr")
def fsetxattr(c: Caller, fd: Int, name: Address, at: Address, size: Size, flags: Unsigned) -> int:
    """Set an attribute of an open file."""
    given = _given(c, name, at, size, flags)
    return _set(c, c.opened(fd).inode, given, flags)


@call("getxattr")
def getxattr(c: Caller, path: PathAddress, name: Address, to: Address, size: Size) -> int:
    """Read an attribute of a file."""
    text = _name(c, name)
    return _get(c, _at(c, path, follow=True), text, to, size)


@call("lgetxattr")
def lgetxattr(c: Caller, path: PathAddress, name: Address, to: Address, size: Size) -> int:
    """Read an attribute of a file, or of a symbolic link."""
    text = _name(c, name)
    return _get(c, _at(c, path, follow=False), text, to, size)


@call("fgetxattr")
def fgetxattr(c: Caller, fd: Int, name: Address, to: Address, size: Size) -> int:
    """Read an attribute of an open file."""
    text = _name(c, name)
    return _get(c, c.opened(fd).inode, text, to, size)


@call("listxattr")
def listxattr(c: Caller, path: PathAddress, to: Address, size: Size) -> int:
    """List the attributes of a file."""
    return _list(c, _at(c, path, follow=True), to, size)


@call("llistxattr")
def llistxattr(c: Caller, path: PathAddress, to: Address, size: Size) -> int:
    """List the attributes of a file, or of a symbolic link."""
    return _list(c, _at(c, path, follow=False), to, size)


@call("flistxattr")
def flistxattr(c: Caller, fd: Int, to: Address, size: Size) -> int:
    """List the attributes of an open file."""
    return _list(c, c.opened(fd).inode, to, size)


@call("removexattr")
def removexattr(c: Caller, path: PathAddress, name: Address) -> int:
    """Take an attribute off a file."""
    text = _name(c, name)
    return _remove(c, _at(c, path, follow=True), text)


@call("lremovexattr")
def lremovexattr(c: Caller, path: PathAddress, name: Address) -> int:
    """Take an attribute off a file, or a symbolic link."""
    text = _name(c, name)
    return _remove(c, _at(c, path, follow=False), text)


@call("fremovexattr")
def fremovexattr(c: Caller, fd: Int, name: Address) -> int:
    """Take an attribute off an open file."""
    text = _name(c, name)
    return _remove(c, c.opened(fd).inode, text)
