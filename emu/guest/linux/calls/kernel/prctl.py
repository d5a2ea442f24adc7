"""prctl: what a process asks for itself beyond its own calls.  Source: Linux kernel/sys.c."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from emu.guest.linux.calls.kernel.kill import check_signal
from emu.guest.linux.calls.table import Address, Caller, Int, Size, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.process.cred import ALL

_NAME_MAX: Final = 15
# The requests of PR_CAP_AMBIENT.
_IS_SET, _RAISE, _LOWER, _CLEAR_ALL = 1, 2, 3, 4


class _Asked(NamedTuple):
    """The arguments behind the option."""

    first: int
    second: int
    third: int
    fourth: int


_Option: TypeAlias = Callable[[Caller, _Asked], int]


def _set_death_signal(c: Caller, asked: _Asked) -> int:
    check_signal(asked.first)
    c.thread.parent_death_signal = asked.first
    return 0


def _write_int(c: Caller, address: int, value: int) -> int:
    c.write(address, struct.pack("<i", value))
    return 0


def _set_dumpable(c: Caller, asked: _Asked) -> int:
    if asked.first not in {0, 1}:
        raise LinuxError(EINVAL)
    c.process.dumpable = asked.first
    return 0


def _set_keeps(c: Caller, asked: _Asked) -> int:
    if asked.first not in {0, 1}:
        raise LinuxError(EINVAL)
    c.process.credentials.keeps = bool(asked.first)
    return 0


def _set_name(c: Caller, asked: _Asked) -> int:
    name = c.string(asked.first)[:_NAME_MAX].decode("utf-8", "surrogateescape")
    c.thread.name = name
    if c.thread.is_leader:
        c.process.name = name
    return 0


def _get_name(c: Caller, asked: _Asked) -> int:
    name = (c.thread.name or c.process.name).encode("utf-8", "surrogateescape")
    c.write(asked.first, name.ljust(_NAME_MAX + 1, b"\0"))
    return 0


def _read_bounding_set(_c: Caller, asked: _Asked) -> int:
    if asked.first >= ALL.bit_length():
        raise LinuxError(EINVAL)
    return 1


def _set_secure_bits(_c: Caller, asked: _Asked) -> int:
    """Refuse all but the bits that are set from the start: none."""
    if asked.first:
        raise LinuxError(EPERM)
    return 0


def _set_reaper(c: Caller, asked: _Asked) -> int:
    c.process.is_reaper = bool(asked.first)
    return 0


def _set_no_new_privileges(c: Caller, asked: _Asked) -> int:
    if asked != (1, 0, 0, 0):
        raise LinuxError(EINVAL)
    c.process.credentials.no_new_privileges = True
    return 0


def _get_no_new_privileges(c: Caller, asked: _Asked) -> int:
    if any(asked):
        raise LinuxError(EINVAL)
    return int(c.process.credentials.no_new_privileges)


def _ambient(_c: Caller, asked: _Asked) -> int:
    """Report that there are no ambient capabilities, and refuse to raise one."""
    wanted, capability, *rest = asked
    known = 1 if wanted == _CLEAR_ALL else ALL.bit_length()
    if any(rest) or capability >= known or wanted not in {_IS_SET, _RAISE, _LOWER, _CLEAR_ALL}:
        raise LinuxError(EINVAL)
    if wanted == _RAISE:
        raise LinuxError(EPERM)
    return 0


# The options by number (include/uapi/linux/prctl.h).
_OPTIONS: Final[dict[int, _Option]] = {
    1: _set_death_signal,
    2: lambda c, asked: _write_int(c, asked.first, c.thread.parent_death_signal),
    3: lambda c, _asked: c.process.dumpable,
    4: _set_dumpable,
    7: lambda c, _asked: int(c.process.credentials.keeps),
    8: _set_keeps,
    15: _set_name,
    16: _get_name,
    23: _read_bounding_set,
    27: lambda _c, _asked: 0,  # PR_GET_SECUREBITS
    28: _set_secure_bits,
    36: _set_reaper,
    37: lambda c, asked: _write_int(c, asked.first, c.process.is_reaper),
    38: _set_no_new_privileges,
    39: _get_no_new_privileges,
    47: _ambient,
}


@call("prctl")
def prctl(c: Caller, option: Int, first: Address, second: Size, third: Size, fourth: Size) -> int:
    """Set or tell something of the calling process or thread.  Raises `LinuxError`."""
    found = _OPTIONS.get(option)
    if found is None:
        raise LinuxError(EINVAL)
    return found(c, _Asked(first, second, third, fourth))
