"""System calls about semaphores of System V.  Source: Linux ipc/sem.c, ipc/syscall.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.select import duration
from emu.guest.linux.calls.ipc.ipc_util import IPC_64, Command, packed_owner, read_owner
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Unsigned, call
from emu.guest.linux.errno import E2BIG, EAGAIN, EFBIG, EINVAL, ERANGE, LinuxError
from emu.guest.linux.ipc.sem import HIGHEST, OPERATIONS_MAX, SET_SIZE_MAX, SETS_MAX, Operation, SemaphoreSet
from emu.guest.linux.process.process import Wait

_GETPID, _GETVAL, _GETALL, _GETNCNT, _GETZCNT, _SETVAL, _SETALL = range(11, 18)
_SEM_STAT, _SEM_INFO, _SEM_STAT_ANY = 18, 19, 20
_READING: Final = frozenset({_GETPID, _GETVAL, _GETALL, _GETNCNT, _GETZCNT})
_OPERATION: Final = struct.Struct("<Hhh")
# struct seminfo: of a map that no one keeps, sets, semaphores, undo structures, semaphores of a set, operations,
# undo entries, size of one, the highest value, the highest value that is undone.
_INFO: Final = struct.Struct("<10i")
_SEMAPHORES_MAX: Final = SETS_MAX * SET_SIZE_MAX
_UNDO_SIZE: Final = 20


@call("semget")
def semget(c: Caller, key: Int, count: Int, flags: Unsigned) -> int:
    """Find a set of semaphores, or make one."""
    if not 0 <= count <= SET_SIZE_MAX:
        raise LinuxError(EINVAL)
    table, credentials = c.kernel.semaphores.table, c.process.credentials
    found = table.wanted(key, flags)
    if found is None:
        if not count:
            raise LinuxError(EINVAL)
        uid, gid = credentials.user.effective, credentials.group.effective
        return table.add(
            SemaphoreSet(
                key=key, permissions=flags & 0o777, uid=uid, gid=gid, maker=(uid, gid),
                changed=c.kernel.wall() // 1_000_000_000, values=[0] * count, last_pids=[0] * count,
            )
        )  # fmt: skip
    if count > len(found.values):
        raise LinuxError(EINVAL)
    found.check(credentials, (flags >> 6 | flags >> 3 | flags) & 7)
    return found.number


def _operate(c: Caller, number: int, address: int, count: int, timeout: int) -> Blocking:
    if count > OPERATIONS_MAX:
        raise LinuxError(E2BIG)
    if number < 0 or not count:
        raise LinuxError(EINVAL)
    data = c.read(address, count * _OPERATION.size)
    operations = [Operation(*one) for one in _OPERATION.iter_unpack(data)]
    limit = duration(c, timeout)
    sets = c.kernel.semaphores
    found = sets.table.get(number)
    if any(one.number >= len(found.values) for one in operations):
        raise LinuxError(EFBIG)
    found.check(c.process.credentials, 2 if any(one.change for one in operations) else 4)
    sleeper = sets.operate(found, operations, c.process)
    if sleeper is None:
        return 0
    try:
        came_true = yield Wait(lambda: sleeper.done, None if limit is None else c.now() + limit)
    finally:
        if not sleeper.done:
            found.sleepers.remove(sleeper)
            sets.wake(found)
    if not came_true:
        raise LinuxError(EAGAIN)
    if sleeper.error:
        raise LinuxError(sleeper.error)
    return 0


@call("semop")
def semop(c: Caller, number: Int, operations: Address, count: Unsigned) -> Blocking:
    """Change semaphores together, and wait until that can be done."""
    return (yield from _operate(c, number, operations, count, 0))


@call("semtimedop")
def semtimedop(c: Caller, number: Int, operations: Address, count: Unsigned, timeout: Address) -> Blocking:
    """Change semaphores together, and wait for some time until that can be done."""
    return (yield from _operate(c, number, operations, count, timeout))


@call("semctl")
def semctl(c: Caller, number: Int, index: Int, command: Int, argument: Address) -> int:
    """Describe a set, set its values, change its owner, or remove it."""
    if number < 0:
        raise LinuxError(EINVAL)
    command &= ~IPC_64
    sets, credentials = c.kernel.semaphores, c.process.credentials
    if command in {Command.INFO, _SEM_INFO}:
        used = (len(sets.table), sum(len(one.values) for one in sets.table))
        told = used if command == _SEM_INFO else (_UNDO_SIZE, HIGHEST)
        fields = (_SEMAPHORES_MAX, SETS_MAX, _SEMAPHORES_MAX, _SEMAPHORES_MAX, SET_SIZE_MAX, OPERATIONS_MAX,
                  OPERATIONS_MAX, told[0], HIGHEST, told[1])  # fmt: skip
        c.write(argument, _INFO.pack(*fields))
        return sets.table.highest
    if command in {Command.STAT, _SEM_STAT, _SEM_STAT_ANY}:
        found = sets.table.get(number) if command == Command.STAT else sets.table.at(number)
        if command != _SEM_STAT_ANY:
            found.check(credentials, 4)
        c.write(argument, _described(c, found))
        return 0 if command == Command.STAT else found.number
    found = sets.table.get(number)
    if command in _READING:
        return _look(c, found, command, index, argument)
    if command in {_SETVAL, _SETALL}:
        return _set(c, found, command, index, argument)
    if command not in {Command.RMID, Command.SET}:
        raise LinuxError(EINVAL)
    owner = read_owner(c, argument) if command == Command.SET else None
    found.check_owner(credentials)
    if owner is None:
        sets.remove(found)
    else:
        found.uid, found.gid, found.permissions = owner
        found.changed = c.kernel.wall() // 1_000_000_000
    return 0


def _look(c: Caller, found: SemaphoreSet, command: int, index: int, argument: int) -> int:
    found.check(c.process.credentials, 4)
    if command == _GETALL:
        c.write(argument, struct.pack(f"<{len(found.values)}H", *found.values))
        return 0
    if not 0 <= index < len(found.values):
        raise LinuxError(EINVAL)
    if command == _GETVAL:
        return found.values[index]
    if command == _GETPID:
        return found.last_pids[index]
    for_zero = command == _GETZCNT
    blockers = [one.blocker for one in found.sleepers]
    return sum(1 for one in blockers if one.number == index and (not one.change) == for_zero)


def _set(c: Caller, found: SemaphoreSet, command: int, index: int, argument: int) -> int:
    found.check(c.process.credentials, 2)
    if command == _SETALL:
        size = len(found.values)
        values = dict(enumerate(struct.unpack(f"<{size}H", c.read(argument, 2 * size))))
    else:
        if not 0 <= index < len(found.values):
            raise LinuxError(EINVAL)
        values = {index: (argument & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)}
    if not all(0 <= value <= HIGHEST for value in values.values()):
        raise LinuxError(ERANGE)
    c.kernel.semaphores.set(found, values, c.process.pid)
    return 0


def _described(c: Caller, found: SemaphoreSet) -> bytes:
    """Return struct semid64_ds."""
    times = (found.operated, found.changed)
    if c.word == 4:
        halves = [half for time in times for half in (time & 0xFFFF_FFFF, time >> 32)]
        return packed_owner(c, found) + struct.pack("<7I", *halves, len(found.values), 0, 0)
    spaced = (times[0], 0, times[1], 0) if c.kernel.abi.spaced_semaphore_times else times
    return packed_owner(c, found) + struct.pack(f"<{len(spaced) + 3}Q", *spaced, len(found.values), 0, 0)
