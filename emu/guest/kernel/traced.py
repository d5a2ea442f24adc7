"""Stretches of the kernel that run only while tracing, where the clock stands still.

The branch to such a stretch leaves two marks in linker sets (testbins/kernel/sys/traced.h): where
it starts, with the number of instructions the branch taken left out, and that of the jump back.  So
a kernel that is traced keeps the time of one that is not, to the instruction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from emu.elf import Image
from emu.engine.clock import VirtualClock
from emu.engine.engine import Engine
from emu.engine.watched import Stretch, Watched, WatchKind

# Of the words in a set, by their size.
_FORMS = {8: "Q", 4: "I"}


class TracedStretches:
    """Stops the clock in all traced stretches of a kernel image, once they are watched."""

    def __init__(self, engine: Engine, image: Image, clock: VirtualClock) -> None:
        self._engine = engine
        self._image = image
        self._clock = clock
        self._stretch = Stretch()
        self._watched = False

    @property
    def inside(self) -> bool:
        """Whether the CPU is in one."""
        return bool(self._stretch.inside)

    def watch(self) -> None:
        """Watch them from now on; to be called before something is traced.

        A run that traces nothing does without: to watch all of them takes some milliseconds.
        """
        if self._watched:
            return
        self._watched = True
        for address, owed in _entries(self._image, "set_traced_begin_set", 2):
            self._watch(address, self._beginning(owed), WatchKind.PAUSE, owed)
        for (address,) in _entries(self._image, "set_traced_end_set", 1):
            self._watch(address, self._end, WatchKind.RESUME)

    def _watch(self, address: int, callback: Callable[[], None], kind: WatchKind, owed: int = 0) -> None:
        watched = Watched(kind, owed=owed, clock=self._clock.address, stretch=self._stretch.address)
        self._engine.on_code(address, callback, watched)
        self._engine.write_code(address, self._engine.read(address, 1))  # what was translated has no callback yet

    def _beginning(self, owed: int) -> Callable[[], None]:
        def begin() -> None:
            self._clock.pause()
            self._stretch.owed, self._stretch.inside = owed, 1

        return begin

    def _end(self) -> None:
        self._stretch.inside = 0
        self._clock.resume(1 - self._stretch.owed)  # the jump itself still belongs to the stretch


def _entries(image: Image, name: str, words: int) -> Iterator[tuple[int, ...]]:
    entry = struct.Struct(f"<{words}{_FORMS[image.isa.word]}")
    section = image.section(name)
    return entry.iter_unpack(section.data) if section is not None else iter(())
