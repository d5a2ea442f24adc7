"""Semaphores of System V: sets of counters that are changed together, and undone at exit.

Source: Linux ipc/sem.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.guest.linux.errno import EAGAIN, EIDRM, ERANGE, LinuxError
from emu.guest.linux.ipc.util import NOWAIT, IpcObject, Table

if TYPE_CHECKING:
    from emu.guest.linux.process.process import Process

# The largest value of a semaphore, and of what is undone (SEMVMX, SEMAEM).
HIGHEST: Final = 32767
# Sets that there may be at one time, and semaphores of one set (SEMMNI, SEMMSL).
SETS_MAX: Final = 32000
SET_SIZE_MAX: Final = 32000
# Operations of one call (SEMOPM).
OPERATIONS_MAX: Final = 500
UNDO: Final = 0x1000


class Operation(NamedTuple):
    """An operation on one semaphore of a set (struct sembuf)."""

    number: int
    """The number of the semaphore in the set."""
    change: int
    """Added to the value; 0: wait until the value is 0."""
    flags: int


@dataclass(eq=False)
class Sleeper:
    """A thread that waits until its operations can be done."""

    operations: Sequence[Operation]
    process: Process
    blocker: Operation
    """The operation that cannot be done."""
    done: bool = False
    error: int = 0

    @property
    def alters(self) -> bool:
        """Whether one of the operations changes a value."""
        return any(one.change for one in self.operations)


@dataclass(eq=False, kw_only=True)
class SemaphoreSet(IpcObject):
    """A set of semaphores (struct sem_array)."""

    values: list[int]
    last_pids: list[int] = field(default_factory=list)
    """The process that changed each last."""
    operated: int = 0
    """The time of the last successful semop, in seconds since 1970."""
    sleepers: list[Sleeper] = field(default_factory=list)
    """The threads that wait, the first in front."""
    undo: dict[Process, dict[int, int]] = field(default_factory=dict)
    """The numbers to be added when a process ends, by process and index."""


class SemaphoreSets:
    """All sets of semaphores of one kernel."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self.table: Table[SemaphoreSet] = Table(SETS_MAX)

    def operate(self, found: SemaphoreSet, operations: Sequence[Operation], process: Process) -> Sleeper | None:
        """Do all operations, or none; return the one who has to wait then.

        Raises `LinuxError`: EAGAIN, ERANGE.
        """
        blocker = self._try(found, operations, process)
        if blocker is not None:
            if blocker.flags & NOWAIT:
                raise LinuxError(EAGAIN)
            sleeper = Sleeper(operations, process, blocker)
            found.sleepers.append(sleeper)
            return sleeper
        found.operated = self._wall() // 1_000_000_000
        if any(one.change for one in operations):
            self.wake(found)
        return None

    def _try(self, found: SemaphoreSet, operations: Sequence[Operation], process: Process) -> Operation | None:
        """Do all operations, or none; return the first that has to wait.

        Raises `LinuxError` ERANGE.
        """
        values = list(found.values)
        undo = dict(found.undo.get(process, {}))
        for one in operations:
            if not one.change and values[one.number]:
                return one
            value = values[one.number] + one.change
            if value < 0:
                return one
            if value > HIGHEST:
                raise LinuxError(ERANGE)
            if one.flags & UNDO:
                undo[one.number] = undo.get(one.number, 0) - one.change
                if not -HIGHEST - 1 <= undo[one.number] <= HIGHEST:
                    raise LinuxError(ERANGE)
            values[one.number] = value
        found.values = values
        if any(one.flags & UNDO for one in operations):
            found.undo[process] = undo
        for one in operations:
            found.last_pids[one.number] = process.pid
        return None

    def wake(self, found: SemaphoreSet) -> None:
        """Do what sleepers wait for, as far as it can be done now."""
        again = True
        while again:
            again = False
            for sleeper in sorted(found.sleepers, key=lambda one: one.alters):
                try:
                    blocker = self._try(found, sleeper.operations, sleeper.process)
                except LinuxError as error:
                    blocker, sleeper.error = None, error.number
                if blocker is not None:
                    if blocker.flags & NOWAIT:
                        sleeper.error, blocker = EAGAIN, None
                    else:
                        sleeper.blocker = blocker
                if blocker is None:
                    sleeper.done = True
                    found.sleepers.remove(sleeper)
                    if not sleeper.error:
                        found.operated = self._wall() // 1_000_000_000
                        again = sleeper.alters
                    if again:
                        break

    def set(self, found: SemaphoreSet, values: dict[int, int], pid: int) -> None:
        """Set values; what was to be undone of them is forgotten."""
        for index, value in values.items():
            found.values[index] = value
            found.last_pids[index] = pid
            for undo in found.undo.values():
                undo.pop(index, None)
        found.changed = self._wall() // 1_000_000_000
        self.wake(found)

    def remove(self, found: SemaphoreSet) -> None:
        """Remove a set; waiting threads get an error."""
        self.table.remove(found)
        for sleeper in found.sleepers:
            sleeper.done, sleeper.error = True, EIDRM
        found.sleepers.clear()

    def ended(self, process: Process) -> None:
        """Undo the operations with SEM_UNDO of a process that ends (exit_sem)."""
        for found in self.table:
            undo = found.undo.pop(process, None)
            if undo is None:
                continue
            for index, change in undo.items():
                if change:
                    found.values[index] = min(max(found.values[index] + change, 0), HIGHEST)
                    found.last_pids[index] = process.pid
            found.operated = self._wall() // 1_000_000_000
            self.wake(found)
