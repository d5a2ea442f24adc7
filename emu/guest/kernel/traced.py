"""Code of the kernel that runs only while tracing, and takes no virtual time.

Each such stretch of code has two entries in linker sets (testbins/kernel/sys/traced.h): its start,
with the number of instructions that the branch to it skips, and the jump back.  So a traced kernel
has exactly the same time as an untraced one, to the instruction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.engine.hits.watched import Stretch, Watched, WatchKind
from emu.engine.time.clock import VirtualClock

# The struct format of the words in a set, by their size.
_FORMS = {8: "Q", 4: "I"}


class TracedStretches:
    """Stops the clock in all such code of a kernel image, when it is watched."""

    def __init__(self, engine: Engine, image: Image, clock: VirtualClock) -> None:
        self._engine = engine
        self._image = image
        self._clock = clock
        self._stretch = Stretch()
        self._watched = False

    @property
    def inside(self) -> bool:
        """Whether the CPU is in such code."""
        return bool(self._stretch.inside)

    def watch(self) -> None:
        """Watch all such code from now on; call this before tracing.

        A run without tracing does not need it, and to watch all such code takes some milliseconds.
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
        self._engine.code.on_code(address, callback, watched)
        self._engine.write_code(address, self._engine.read(address, 1))  # translated code has no callback yet

    def _beginning(self, owed: int) -> Callable[[], None]:
        def begin() -> None:
            self._clock.pause()
            self._stretch.owed, self._stretch.inside = owed, 1

        return begin

    def _end(self) -> None:
        self._stretch.inside = 0
        self._clock.resume(1 - self._stretch.owed)  # the jump itself still belongs to this code


def _entries(image: Image, name: str, words: int) -> Iterator[tuple[int, ...]]:
    entry = struct.Struct(f"<{words}{_FORMS[image.isa.word]}")
    section = image.section(name)
    return entry.iter_unpack(section.data) if section is not None else iter(())
