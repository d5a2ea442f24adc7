"""How long each thread of the kernel guest has been on the CPU.

Time is added up where the kernel changes threads (FreeBSD's dtrace_vtime_switch(), which mi_switch() calls); what
probes cost is not in it, for the clock stands still meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from emu.elf import Image
from emu.engine.engine import Engine
from emu.guest.kernel.introspection import Introspection


class ThreadTimes:
    """The threads' clocks, in virtual nanoseconds."""

    def __init__(self, engine: Engine, image: Image, introspection: Introspection, now: Callable[[], int]) -> None:
        self._thread = introspection.thread
        self._now = now
        self._since = 0
        self._until_then: defaultdict[int, int] = defaultdict(int)
        engine.on_code(image.symbol("cpu_switch").value, self._switch)

    def current(self) -> int:
        """Return how long the current thread has been on the CPU."""
        return self._until_then[self._thread().tid] + self._now() - self._since

    def _switch(self) -> None:
        self._until_then[self._thread().tid] = self.current()
        self._since = self._now()
