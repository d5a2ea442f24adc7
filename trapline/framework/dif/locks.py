"""The subroutines about locks of the traced kernel.

As on FreeBSD each accepts any lock and uses its class (dtrace.c dtrace_dif_subr(), by lc_owner and
lc_flags), so the subroutines for mutexes also accept a shared/exclusive lock, and mutex_owned()
returns whether it has any owner. FreeBSD's bug in `*_exclusive_held`, `*_write_held` and
`*_iswriter` is not reproduced: FreeBSD treats their argument as the address of a pointer to the
lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.guest.base import Lock
from emu.support.words import BadAddressError
from trapline.framework.base.context import Context
from trapline.framework.base.dif import Subr
from trapline.framework.base.faults import BADADDR, ILLOP
from trapline.framework.dif.operations import Operations, Stack

# (lock, address of the current thread) -> the answer
Question = Callable[[Lock, int], int]


def _shared(lock: Lock, _thread: int) -> int:
    return lock.held and not lock.owner


def _exclusive(lock: Lock, _thread: int) -> int:
    return lock.owner != 0


def _mine(lock: Lock, thread: int) -> int:
    return lock.owner == thread


QUESTIONS: Final[Mapping[Subr, Question]] = {
    Subr.MUTEX_OWNED: lambda lock, _thread: lock.held,
    Subr.MUTEX_OWNER: lambda lock, _thread: lock.owner,
    Subr.MUTEX_TYPE_ADAPTIVE: lambda lock, _thread: not lock.spins,
    Subr.MUTEX_TYPE_SPIN: lambda lock, _thread: lock.spins,
    **dict.fromkeys((Subr.RW_READ_HELD, Subr.SX_SHARED_HELD), _shared),
    **dict.fromkeys((Subr.RW_WRITE_HELD, Subr.SX_EXCLUSIVE_HELD), _exclusive),
    **dict.fromkeys((Subr.RW_ISWRITER, Subr.SX_ISEXCLUSIVE), _mine),
}

# Bytes of a lock that the consumer must be allowed to read (struct lock_object).
_SMALLEST: Final = 16


def asks(question: Question, operations: Operations) -> Callable[[Context, Stack], int]:
    """Make a subroutine from a function of a lock.

    It is an illegal operation if the guest has no kernel, and an invalid address if there is no
    lock at the address.
    """
    read = operations.world.abilities.lock

    def subroutine(ctx: Context, stack: Stack) -> int:
        address = stack[0][0] if stack else 0
        if read is None:
            operations.core.flags |= ILLOP
            return 0
        if not operations.can_load(address, _SMALLEST):
            return 0
        try:
            lock = read(address)
        except BadAddressError as error:
            operations.memory.fault(BADADDR, error.address)
            return 0
        if lock is None:
            operations.memory.fault(BADADDR, address)
            return 0
        return int(question(lock, operations.thread(ctx).address))

    return subroutine
