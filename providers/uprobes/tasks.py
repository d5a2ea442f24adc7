"""The state of each thread: a step, and returns that are pending.

Python and machine code (`providers.uprobes.native`) work on the same words.

Source: Linux 6.12 include/linux/uprobes.h (struct uprobe_task).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from emu.native.block import Block
from providers.uprobes.records import PendingReturn, TaskWords

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Thread

# MAX_URETPROBE_DEPTH: the largest number of pending returns of one thread.
MAX_DEPTH: Final = 64


class Task:
    """The state of one thread."""

    def __init__(self) -> None:
        self._returns = (PendingReturn * MAX_DEPTH)()
        self.words = TaskWords(returns=ctypes.addressof(self._returns))

    @property
    def last(self) -> PendingReturn:
        """The return that was entered last; there must be one."""
        return self.at(self.words.depth - 1)

    def at(self, index: int) -> PendingReturn:
        """Return a pending return; 0: the one that was entered first."""
        return self._returns[index]

    def push(self, *words: int) -> None:
        """Add a pending return; there must be room."""
        self._returns[self.words.depth] = PendingReturn(*words)
        self.words.depth += 1

    def pop(self) -> PendingReturn:
        """Remove the return that was entered last, and return it."""
        self.words.depth -= 1
        return PendingReturn.from_buffer_copy(self._returns[self.words.depth])

    def pending(self) -> list[PendingReturn]:
        """Return the returns, the first entered first."""
        return list(self._returns[: self.words.depth])


class CurrentTask(Block):
    """The task that machine code found last."""

    thread: int
    """The engine's number of its thread; 0: none."""
    task: int
    """Address of its `TaskWords`."""


class Tasks:
    """The tasks of one kernel's threads."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._tasks: dict[Thread, Task] = {}
        self.current = CurrentTask()

    def of(self, thread: Thread) -> Task:
        """Return a thread's task."""
        task = self._tasks.get(thread)
        if task is None:
            task = self._tasks[thread] = Task()
        return task

    def known(self, thread: Thread) -> Task | None:
        """Return a thread's task, None if it has none yet."""
        return self._tasks.get(thread)

    def step(self, thread: Thread) -> int:
        """Return the address of the `InstalledWords` of the copy that a thread runs; 0: none."""
        task = self._tasks.get(thread)
        return 0 if task is None else task.words.step

    def steps(self) -> set[int]:
        """Return the same for all threads that run a copy."""
        return {task.words.step for task in self._tasks.values() if task.words.step}

    def drop(self, thread: Thread) -> Task | None:
        """Forget a thread, and return its state."""
        self.current.thread = 0
        return self._tasks.pop(thread, None)

    def switch(self) -> int:
        """Make the current thread's task the current one; return the address of its words."""
        thread = self._kernel.current
        assert thread is not None
        self.current.thread, self.current.task = thread.tid, self.of(thread).words.address
        return self.current.task
