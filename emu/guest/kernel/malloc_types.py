"""The kernel guest's malloc types, for the provider that lists and arms them.

Each type has words for two probe ids; while `dtrace_malloc_enabled` is set, malloc() and free()
fire the probes with these ids (FreeBSD sys/kern/kern_malloc.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.guest.kernel.introspection import offsets, text_at

_ID: Final = 4
_NAME_LIMIT: Final = 192


class MallocType(NamedTuple):
    """One type: its address, and its short description."""

    address: int
    description: str


class MallocTypes:
    """The types of one guest; `watch` is called before probes are enabled."""

    def __init__(self, engine: Engine, image: Image, watch: Callable[[], object]) -> None:
        self._engine = engine
        self._word = image.isa.word
        self._watch = watch
        self._offset = offsets(image)
        self._head = image.symbol("kmemstatistics").value
        self._enabled = image.symbol("dtrace_malloc_enabled").value

    def __iter__(self) -> Iterator[MallocType]:
        """Yield the types in the order of the kernel's list, the newest first."""
        address = self._engine.load(self._head, self._word)
        while address:
            yield MallocType(address, self._text(self._engine.load(address + self._offset["KS_SHORTDESC"], self._word)))
            address = self._engine.load(address + self._offset["KS_NEXT"], self._word)

    def _text(self, address: int) -> str:
        return text_at(self._engine, address, _NAME_LIMIT)

    def arm(self, kind: MallocType, probe: int, probe_id: int) -> None:
        """Set the id of a type's probe number `probe`; 0: none."""
        self._engine.store(kind.address + self._offset["KS_PROBES"] + _ID * probe, _ID, probe_id)

    def enable(self, *, on: bool) -> None:
        """Enable or disable all probes."""
        if on:
            self._watch()
        self._engine.store(self._enabled, 1, on)
