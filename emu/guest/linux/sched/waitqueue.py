"""Threads that wait, and which of them have a reason to look again.

A wait that names what has to change first (`Wait.key`) is looked at after that has changed, after a
signal, or when its time is over; all others are looked at each time.  So many threads that wait
cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emu.guest.linux.process.process import Life, Thread, Wait
from emu.guest.linux.time.alarms import DueQueue


class Blocked:
    """The threads of one kernel that wait; `now()` is the virtual time."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._watched: dict[Thread, None] = {}
        """The threads whose wait names nothing."""
        self._by_key: dict[int, dict[Thread, None]] = {}
        self._keys: dict[Thread, object] = {}
        """The named object, which lives as long as a thread waits for it, so its id() is unique."""
        self._hosts: dict[Thread, None] = {}
        self._due: DueQueue[Thread] = DueQueue()
        self._to_look: dict[Thread, None] = {}

    def add(self, thread: Thread, wait: Wait) -> None:
        """Add a thread that waits."""
        thread.life = Life.BLOCKED
        if wait.key is None:
            self._watched[thread] = None
        else:
            self._keys[thread] = wait.key
            self._by_key.setdefault(id(wait.key), {})[thread] = None
            self._to_look[thread] = None
        if wait.host:
            self._hosts[thread] = None
        if wait.deadline is not None:
            self._due.put(thread, wait.deadline)

    def remove(self, thread: Thread) -> None:
        """Forget a thread, whatever it does now."""
        self._watched.pop(thread, None)
        self._hosts.pop(thread, None)
        self._to_look.pop(thread, None)
        self._due.forget(thread)
        key = self._keys.pop(thread, None)
        if key is not None:
            known = self._by_key[id(key)]
            del known[thread]
            if not known:
                del self._by_key[id(key)]

    def changed(self, key: object) -> None:
        """Check the threads that wait for this."""
        known = self._by_key.get(id(key))
        if known:
            self._to_look.update(known)

    def signalled(self, thread: Thread) -> None:
        """Check a thread that has got a signal."""
        if thread in self._keys:
            self._to_look[thread] = None

    def to_look_at(self) -> list[Thread]:
        """Return, by number, the threads that have a reason to look whether they can continue."""
        overdue = self._due.first()
        if not self._watched and not self._to_look and (overdue is None or overdue > self._now()):
            return []
        found = {**self._watched, **self._to_look}
        self._to_look.clear()
        if overdue is not None and overdue <= self._now():
            for thread in self._due.take(self._now()):
                found[thread] = None
        return sorted((thread for thread in found if thread.life is Life.BLOCKED), key=lambda thread: thread.tid)

    def upcoming(self) -> int | None:
        """Return when the next wait is over, None: none ends by itself."""
        return self._due.first()

    def host_waits(self) -> Iterator[Wait]:
        """Yield the waits that depend on the host's input."""
        for thread in self._hosts:
            if thread.life is Life.BLOCKED and thread.wait is not None:
                yield thread.wait
