"""The processes and threads of one kernel, by number, and the thread that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from emu.guest.linux.mm.address_space import Area, Space
from emu.guest.linux.process.process import INIT, LinuxObserver, Process, Thread

FIRST_PID: Final = 100


class Tasks:
    """The processes and threads of one kernel.

    `note_thread(number)` is called with the number of the thread that runs, 0 for none.
    """

    def __init__(self, note_thread: Callable[[int], object]) -> None:
        self.processes: dict[int, Process] = {}
        self.threads: dict[int, Thread] = {}
        self.first: Process | None = None
        """The process that the guest was started for."""
        self.init: Process | None = None
        """Process 1, which is in no table: only calls that name it find it."""
        self.observers: list[LinuxObserver] = []
        self._current: Thread | None = None
        self._note_thread = note_thread
        self._numbers = count(FIRST_PID)

    @property
    def current(self) -> Thread | None:
        """The thread that runs."""
        return self._current

    @current.setter
    def current(self, thread: Thread | None) -> None:
        self._current = thread
        self._note_thread(thread.tid if thread is not None else 0)

    def new_number(self) -> int:
        """Return the next number of a process or thread."""
        return next(self._numbers)

    def find(self, pid: int) -> Process | None:
        """Return the process of a number that a program has named; None: there is none."""
        return self.init if pid == INIT else self.processes.get(pid)

    def find_thread(self, tid: int) -> Thread | None:
        """Return the thread of a number that a program has named; None: there is none."""
        if tid == INIT and self.init is not None:
            return self.init.threads[0]
        return self.threads.get(tid)

    def mappings(self, backing: object) -> Iterator[tuple[Space, Area]]:
        """Yield the areas of live processes in which a backing is mapped, with their spaces."""
        for space in {process.space for process in self.processes.values() if process.alive}:
            yield from ((space, area) for area in space.areas if area.backing is backing)

    def group(self, number: int) -> list[Process]:
        """Return the processes of a process group."""
        return [process for process in self.processes.values() if process.group == number]
