"""Futexes: the threads that wait for words of memory.

Source: Linux kernel/futex/core.c, waitwake.c, requeue.c.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.process.process import Waiter

_ANY = 0xFFFF_FFFF


class Futexes:
    """The waiters of all futexes, each queue with the first in front."""

    def __init__(self, changed: Callable[[object], object]) -> None:
        self._changed = changed
        """Called with a waiter that is woken."""
        self._queues: dict[tuple[object, int], list[Waiter]] = {}

    def wait(self, space: Space, address: int, bits: int) -> Waiter:
        """Return a new waiter, the last of its queue."""
        return Waiter(bits, self.queue(space, address))

    def wake(self, space: Space, address: int, count: int, bits: int = _ANY) -> int:
        """Wake up to `count` waiters that have one of these bits; return how many there were."""
        queue = self.queue(space, address)
        chosen = [waiter for waiter in queue if waiter.bits & bits][:count]
        for waiter in chosen:
            waiter.woken = True
            self._changed(waiter)
            queue.remove(waiter)
        return len(chosen)

    def requeue(self, space: Space, address: int, other: int, count: int) -> int:
        """Move up to `count` waiters to another futex; return how many there were."""
        queue, target = self.queue(space, address), self.queue(space, other)
        moved = queue[:count]
        for waiter in moved:
            queue.remove(waiter)
            waiter.join(target)
        return len(moved)

    def move(self, space: Space, address: int, waiter: Waiter) -> None:
        """Take one waiter off a futex, woken."""
        waiter.woken = True
        self._changed(waiter)
        self.queue(space, address).remove(waiter)

    def waiters(self, space: Space, address: int) -> tuple[Waiter, ...]:
        """Return who waits for a futex, the first in front."""
        return tuple(self.queue(space, address))

    @staticmethod
    def key(space: Space, address: int) -> tuple[object, int]:
        """Return what names a futex: memory that processes share has one name in all of them."""
        area = space.area_at(address)
        if area is not None and area.shared and area.backing is not None:
            return (area.backing, address - area.start + area.offset)
        return (space, address)

    def queue(self, space: Space, address: int) -> list[Waiter]:
        """Return who waits for a futex, to be added to."""
        return self._queues.setdefault(self.key(space, address), [])
