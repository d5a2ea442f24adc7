"""membarrier: all threads see memory alike.  Source: Linux kernel/sched/membarrier.c.

The guest's CPUs take turns, so memory is always alike; what a process has registered for is kept.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Caller, Int, Unsigned, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError

_QUERY: Final = 0
_GLOBAL, _GLOBAL_EXPEDITED, _REGISTER_GLOBAL_EXPEDITED = 0x01, 0x02, 0x04
_PRIVATE_EXPEDITED, _REGISTER_PRIVATE_EXPEDITED = 0x08, 0x10
_SYNC_CORE, _REGISTER_SYNC_CORE, _GET_REGISTRATIONS = 0x20, 0x40, 0x200
# All of them; those for rseq are missing, as rseq is.
_ALL: Final = 0x27F
# Commands, and the registrations that they need.
_NEEDED: Final = {_PRIVATE_EXPEDITED: _REGISTER_PRIVATE_EXPEDITED, _SYNC_CORE: _REGISTER_SYNC_CORE}


@call("membarrier")
def membarrier(c: Caller, command: Int, flags: Unsigned, _cpu: Int) -> int:
    """Do what a command asks: register for another one, or let all threads see memory alike."""
    if flags:
        raise LinuxError(EINVAL)
    space = c.process.space
    if command == _QUERY:
        return _ALL
    if command == _GET_REGISTRATIONS:
        known = space.barriers
        return known | _REGISTER_PRIVATE_EXPEDITED if known & _REGISTER_SYNC_CORE else known
    if command in {_REGISTER_GLOBAL_EXPEDITED, _REGISTER_PRIVATE_EXPEDITED, _REGISTER_SYNC_CORE}:
        space.barriers |= command
    elif command in _NEEDED:
        if not space.barriers & _NEEDED[command]:
            raise LinuxError(EPERM)
    elif command not in {_GLOBAL, _GLOBAL_EXPEDITED}:
        raise LinuxError(EINVAL)
    return 0
