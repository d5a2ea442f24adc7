"""System calls about users, groups and capabilities.

Source: Linux kernel/sys.c, kernel/groups.c, kernel/capability.c.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final, Literal

from emu.guest.linux.calls.kernel.rlimit import process_of
from emu.guest.linux.calls.table import Address, Caller, Int, Unsigned, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.process.cred import ALL, Capability, Ids
from emu.guest.linux.process.process import Process

_UNCHANGED: Final = 0xFFFF_FFFF
_GROUPS_MAX: Final = 65536
# Version 3 has 64 bits of each set, in two structures (include/uapi/linux/capability.h).
_VERSION_1, _VERSION_2, _VERSION_3 = 0x19980330, 0x20071026, 0x20080522

Kind = Literal["user", "group"]


def _ids(c: Caller, kind: Kind) -> Ids:
    credentials = c.process.credentials
    return credentials.user if kind == "user" else credentials.group


def _set(c: Caller, kind: Kind, ids: Ids) -> int:
    if kind == "user":
        c.process.credentials.set_user(ids)
    else:
        c.process.credentials.group = ids
    return 0


def _may_set(c: Caller, kind: Kind) -> bool:
    return c.process.credentials.can(Capability.SETUID if kind == "user" else Capability.SETGID)


def _set_one(c: Caller, kind: Kind, number: int) -> int:
    """Do setuid or setgid."""
    ids = _ids(c, kind)
    if number == _UNCHANGED:
        raise LinuxError(EINVAL)
    if _may_set(c, kind):
        return _set(c, kind, Ids.all(number))
    if number not in {ids.real, ids.saved}:
        raise LinuxError(EPERM)
    return _set(c, kind, replace(ids, effective=number, files=number))


def _set_two(c: Caller, kind: Kind, real: int, effective: int) -> int:
    """Do setreuid or setregid."""
    ids = _ids(c, kind)
    new_real = ids.real if real == _UNCHANGED else real
    new_effective = ids.effective if effective == _UNCHANGED else effective
    if not _may_set(c, kind) and (new_real not in {ids.real, ids.effective} or not ids.knows(new_effective)):
        raise LinuxError(EPERM)
    changed = real != _UNCHANGED or (effective not in {_UNCHANGED, ids.real})
    saved = new_effective if changed else ids.saved
    return _set(c, kind, Ids(new_real, new_effective, saved, new_effective))


def _set_three(c: Caller, kind: Kind, numbers: tuple[int, int, int]) -> int:
    """Do setresuid or setresgid."""
    ids = _ids(c, kind)
    if not _may_set(c, kind) and not all(ids.knows(one) for one in numbers if one != _UNCHANGED):
        raise LinuxError(EPERM)
    old = (ids.real, ids.effective, ids.saved)
    real, effective, saved = (before if one == _UNCHANGED else one for before, one in zip(old, numbers, strict=True))
    return _set(c, kind, Ids(real, effective, saved, effective))


def _set_files(c: Caller, kind: Kind, number: int) -> int:
    """Do setfsuid or setfsgid: the result is the old number, whatever happens."""
    ids = _ids(c, kind)
    allowed = _may_set(c, kind) or ids.knows(number) or number == ids.files
    if allowed and number != _UNCHANGED:
        if kind == "user":
            c.process.credentials.set_file_user(number)
        else:
            c.process.credentials.group = replace(ids, files=number)
    return ids.files


def _tell_three(c: Caller, ids: Ids, addresses: tuple[int, int, int]) -> int:
    for address, number in zip(addresses, (ids.real, ids.effective, ids.saved), strict=True):
        c.write(address, struct.pack("<I", number))
    return 0


@call("getuid")
def getuid(c: Caller) -> int:
    """Return the real user."""
    return c.process.credentials.user.real


@call("geteuid")
def geteuid(c: Caller) -> int:
    """Return the effective user."""
    return c.process.credentials.user.effective


@call("getgid")
def getgid(c: Caller) -> int:
    """Return the real group."""
    return c.process.credentials.group.real


@call("getegid")
def getegid(c: Caller) -> int:
    """Return the effective group."""
    return c.process.credentials.group.effective


@call("setuid")
def setuid(c: Caller, number: Unsigned) -> int:
    """Set the user."""
    return _set_one(c, "user", number)


@call("setgid")
def setgid(c: Caller, number: Unsigned) -> int:
    """Set the group."""
    return _set_one(c, "group", number)


@call("setreuid")
def setreuid(c: Caller, real: Unsigned, effective: Unsigned) -> int:
    """Set the real and the effective user."""
    return _set_two(c, "user", real, effective)


@call("setregid")
def setregid(c: Caller, real: Unsigned, effective: Unsigned) -> int:
    """Set the real and the effective group."""
    return _set_two(c, "group", real, effective)


@call("setresuid")
def setresuid(c: Caller, real: Unsigned, effective: Unsigned, saved: Unsigned) -> int:
    """Set the real, the effective and the saved user."""
    return _set_three(c, "user", (real, effective, saved))


@call("setresgid")
def setresgid(c: Caller, real: Unsigned, effective: Unsigned, saved: Unsigned) -> int:
    """Set the real, the effective and the saved group."""
    return _set_three(c, "group", (real, effective, saved))


@call("setfsuid")
def setfsuid(c: Caller, number: Unsigned) -> int:
    """Set the user with which files are opened."""
    return _set_files(c, "user", number)


@call("setfsgid")
def setfsgid(c: Caller, number: Unsigned) -> int:
    """Set the group with which files are opened."""
    return _set_files(c, "group", number)


@call("getresuid")
def getresuid(c: Caller, real: Address, effective: Address, saved: Address) -> int:
    """Report the three users."""
    return _tell_three(c, c.process.credentials.user, (real, effective, saved))


@call("getresgid")
def getresgid(c: Caller, real: Address, effective: Address, saved: Address) -> int:
    """Report the three groups."""
    return _tell_three(c, c.process.credentials.group, (real, effective, saved))


@call("getgroups")
def getgroups(c: Caller, size: Int, to: Address) -> int:
    """Report the supplementary groups."""
    groups = c.process.credentials.groups
    if size < 0 or 0 < size < len(groups):
        raise LinuxError(EINVAL)
    if size:
        c.write(to, struct.pack(f"<{len(groups)}I", *groups))
    return len(groups)


@call("setgroups")
def setgroups(c: Caller, size: Int, at: Address) -> int:
    """Set the supplementary groups."""
    if not c.process.credentials.can(Capability.SETGID):
        raise LinuxError(EPERM)
    if not 0 <= size <= _GROUPS_MAX:
        raise LinuxError(EINVAL)
    c.process.credentials.groups = tuple(sorted(struct.unpack(f"<{size}I", c.read(at, 4 * size))))
    return 0


def _version(c: Caller, header: int) -> int | None:
    """Return the number of structures of a header's version; None: an unknown version."""
    words = {_VERSION_1: 1, _VERSION_2: 2, _VERSION_3: 2}.get(c.number(header, 4))
    if words is None:
        c.write(header, struct.pack("<I", _VERSION_3))
    return words


def _process(c: Caller, header: int) -> Process:
    """Return the process that a header names.  Raises `LinuxError` ESRCH."""
    return process_of(c, c.number(header + 4, 4))


@call("capget")
def capget(c: Caller, header: Address, data: Address) -> int:
    """Report the capabilities."""
    words = _version(c, header)
    if words is None:
        if data:
            raise LinuxError(EINVAL)
        return 0
    known = _process(c, header).credentials
    sets = (known.effective, known.permitted, known.inheritable)
    if data:
        rows = (struct.pack("<III", *(one >> 32 * word & 0xFFFF_FFFF for one in sets)) for word in range(words))
        c.write(data, b"".join(rows))
    return 0


@call("capset")
def capset(c: Caller, header: Address, data: Address) -> int:
    """Set the capabilities: those that are permitted can be taken on, or given up forever."""
    words = _version(c, header)
    if words is None:
        raise LinuxError(EINVAL)
    if _process(c, header) is not c.process:
        raise LinuxError(EPERM)
    rows = list(struct.iter_unpack("<III", c.read(data, 12 * words)))
    effective, permitted, inheritable = (
        sum(row[index] << 32 * word for word, row in enumerate(rows)) & ALL for index in range(3)
    )
    known = c.process.credentials
    if permitted & ~known.permitted or effective & ~permitted or inheritable & ~(known.inheritable | known.permitted):
        raise LinuxError(EPERM)
    known.effective, known.permitted, known.inheritable = effective, permitted, inheritable
    return 0
